// --- Schedules

function schedules() {
  const list = table("Schedules", "schedules", (s) => [s.group, s.name].join("\n"), [
    rowHead("Schedule", "name", (cell, s) => text(cell, s.error ?? s.name)),
    plain("Group", "lane", (s) => s.group),
    plain("When", "type", (s) => s.when),
    column("Last", "time", (cell, s) => moment(cell, s.last, "never yet")),
    column("Next", "time", (cell, s) => moment(cell, s.next, "never again")),
    column("State", "status", (cell, s) => status(cell, s.error ? "unknown" : s.paused ? "paused" : "runs")),
    column("Actions", "actions", (cell, s) => {
      const name = `schedule ${inside(s.name)}`;
      const of = { schedules: s.group, schedule: s.name };
      buttons(cell, [
        can(s, "runNow") && { label: "Run now", of: name, does: () => act(`run ${name} now`, { action: "runNow", ...of }) },
        !s.paused && can(s, "pauseSchedule") && { label: "Pause", of: name, does: () => act(`pause ${name}`, { action: "pauseSchedule", ...of }) },
        s.paused && can(s, "resumeSchedule") && { label: "Resume", of: name, does: () => act(`resume ${name}`, { action: "resumeSchedule", ...of }) },
      ]);
    }),
  ], "The program shows no schedules.");
  return {
    title: "Schedules",
    nodes: [list.node],
    feed: () => ["overview", {}],
    update(frame) {
      all = frame;
      list.set(frame.schedules);
    },
  };
}
