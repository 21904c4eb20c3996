// --- Time

const fine = (ms) => (ms < 1 ? `${Math.round(ms * 1000)} µs` : ms < 10 ? `${ms.toFixed(1)} ms` : span(ms));

function times() {
  const minutes = el("select");
  choose(minutes, [["1", "minute"], ["", "5 minutes"], ["60", "hour"]]);
  const form = filters(field("minutes", "In the last", minutes));
  const power = (ms) => Math.round(Math.log2(ms));
  let low = 0; // all bars begin at this power of two, and end at the other
  let high = 0;
  const spread = (head, name) => column(head, "spread", (cell, t) => {
    const s = t[name];
    if (!s?.count) return text(cell, t.error ?? "–");
    if (!cell.firstElementChild) cell.replaceChildren(svg("svg", { "aria-hidden": "true", preserveAspectRatio: "none" }, svg("path")), el("span"));
    const most = Math.max(...s.ranges.map((r) => r[1]));
    attr(cell.firstChild, "viewBox", `0 0 ${high - low + 1} 10`);
    attr(cell.firstChild.firstChild, "d", s.ranges.map(([end, n]) => n && ((y) => `M${power(end) - low},10v${-y}h.9v${y}z`)(1 + (9 * n) / most)).filter(Boolean).join(""));
    text(cell.lastChild, `p50 ${fine(s.p50Ms)} · p95 ${fine(s.p95Ms)} · p99 ${fine(s.p99Ms)}`);
  });
  const note = el("p", { class: "note" });
  const missing = el("p", { class: "note" });
  const rows = table("Waits and runs of operations that have ended", "times", (t) => [t.coordinator, t.lane, t.class].join("\n"), [
    rowHead("Of", "name", (cell, t) => link(cell, address("operations", { coordinator: t.coordinator, lane: t.lane }),
      joined([inside(coordinatorOf(t.coordinator)?.name ?? t.coordinator), t.lane && `lane ${inside(t.lane)}`, t.class && `class ${inside(t.class)}`], " · "))),
    plain("Ended", "num", (t) => count(t.running?.count)),
    spread("Waited", "waiting"),
    spread("Ran", "running"),
  ], "No coordinator counts times.");
  return {
    title: "Time",
    nodes: [form, rows.node, note, missing],
    feed(p) {
      refill(form, p);
      return ["time", { minutes: p.minutes || 5 }];
    },
    update(frame) {
      const ends = frame.times.flatMap((t) => [t.waiting, t.running]).flatMap((s) => s?.ranges ?? []).map((r) => power(r[0]));
      [low, high] = [Math.min(...ends), Math.max(...ends)];
      rows.set(frame.times);
      text(missing, frame.missing ? `The option MaxTimes leaves out ${many(frame.missing, "more coordinator")}.` : "");
      text(note, ends.length ? `The bars are for times from ${fine(2 ** (low - 1))} to ${fine(2 ** high)}. Each bar is for times twice as long as those of the bar before it.` : "");
    },
  };
}
