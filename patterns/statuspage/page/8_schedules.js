// --- Schedules

function scheduleButtons(cell, s) {
  const name = `schedule ${inside(s.name)}`;
  const of = { schedules: s.group, schedule: s.name };
  buttons(cell, [
    can(s, "runNow") && { label: "Run now", of: name, does: () => act(`run ${name} now`, { action: "runNow", ...of }) },
    !s.paused && can(s, "pauseSchedule") && { label: "Pause", of: name, does: () => act(`pause ${name}`, { action: "pauseSchedule", ...of }) },
    s.paused && can(s, "resumeSchedule") && { label: "Resume", of: name, does: () => act(`resume ${name}`, { action: "resumeSchedule", ...of }) },
  ]);
}

const scheduleTable = (caption, empty) => table(caption, "schedules", (s) => [s.group, s.name].join("\n"), [
  rowHead("Schedule", "name", (cell, s) => link(cell, s.error ? null : address("schedule", { schedules: s.group, schedule: s.name }), s.error ?? s.name)),
  plain("Description", "about", (s) => s.description),
  plain("Group", "lane", (s) => s.group),
  plain("When", "type", (s) => s.when),
  column("Last", "time", (cell, s) => moment(cell, s.last, "never yet")),
  column("Next", "time", (cell, s) => moment(cell, s.next, "never again")),
  column("State", "status", (cell, s) => status(cell, s.error ? "unknown" : s.paused ? "paused" : "runs")),
  column("Actions", "actions", (cell, s) => scheduleButtons(cell, s)),
], empty);

function schedules() {
  const list = scheduleTable("Schedules", "The program shows no schedules.");
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

// --- One schedule

function schedule() {
  const row = scheduleTable("Schedule");
  const firings = table("Last 20 firings", "firings", (f) => f.i, [
    rowHead("Tick", "time", (cell, f) => moment(cell, f.tick)),
    column("Became", "status", (cell, f) => status(cell, f.state)),
    column("Operation", "id", (cell, f) => link(cell, toOperation(f.coordinator, f.operation), f.operation || "")),
    plain("Error or reason", "error", (f) => f.error),
  ], "It has not fired in this process, or its group does not keep firings.");
  return {
    title: "Schedule",
    nodes: [row.node, firings.node],
    feed(p) {
      text($("heading"), `Schedule ${p.schedule ?? ""}`);
      return ["schedule", { schedules: p.schedules, schedule: p.schedule }];
    },
    update(frame) {
      this.title = `Schedule ${inside(frame.name)}`;
      row.set([frame]);
      firings.set((frame.firings ?? []).map((f, i) => ({ ...f, i })));
    },
  };
}
