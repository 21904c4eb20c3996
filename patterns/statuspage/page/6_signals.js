// --- Signals

function signals() {
  const which = el("select");
  const form = filters(field("sink", "Sink", which), field("pattern", "Pattern", input("all, or like order.*")), field("key", "Key", input("any")));
  const raisedBy = (cell, s) => link(cell, toOperation(s.coordinator, s.operation), s.operation ? `${inside(s.source || s.coordinator || "")} ${s.operation}` : joined([inside(s.source || "sink"), s.node && `on ${inside(s.node)}`], " "));
  const held = table("Held now", "heldnow", (s) => s.seq, [
    rowHead("Signal", "name", (cell, s) => text(cell, s.name)),
    plain("Key", "key", (s) => s.key),
    column("Held by", "by", raisedBy),
    column("Since", "time", (cell, s) => moment(cell, s.time)),
    column("Closes", "closes", (cell, s) => {
      sync(cell, s.gates ?? [], (g) => [g.coordinator, g.kind, g.lane, g.pattern].join("\n"), () => el("a", { class: "reason" }), (a, g) => {
        attr(a, "href", address("operations", { coordinator: g.coordinator, status: "pending", lane: g.lane }));
        text(a, `${gateWords[g.kind] ?? g.kind} ${inside(coordinatorOf(g.coordinator)?.name ?? g.coordinator)}${g.lane ? " lane " + inside(g.lane) : ""} (${inside(g.pattern)})`);
      });
    }),
  ], "No signal is held.");
  let params = {};
  const families = table("Families", "small families", (f) => f.family, [
    rowHead("Family", "name", (cell, f) => link(cell, f.family ? address("signals", { ...params, pattern: `${f.family},${f.family}.*,${f.family}:*` }) : null, f.family || "(all others)")),
    plain("Signals", "num", (f) => count(f.count)),
  ], "No signals.");
  const tail = table("Newest first", "signals", (s) => s.seq, [
    column("Time", "time", (cell, s) => moment(cell, s.time)),
    rowHead("Signal", "name", (cell, s) => because(cell, s, params.sink)),
    plain("Key", "key", (s) => s.key),
    column("By", "by", raisedBy),
    plain("Payload", "type", (s) => joined([s.payload, s.held && "held"], " · ")),
  ], "No signal matches.");
  const skipped = el("p", { class: "note", hidden: true });
  const retract = el("span", { class: "buttons" });
  form.append(retract);
  return {
    title: "Signals",
    nodes: [form.box, el("div", { class: "columns" }, el("div", {}, held.node, skipped, tail.node), families.node)],
    feed(p) {
      params = p;
      choose(which, (all.sinks ?? []).map((s) => [s.name, s.name]));
      const sink = p.sink || all.sinks?.[0]?.name;
      refill(form, { ...p, sink });
      buttons(retract, p.pattern && can((all.sinks ?? []).find((s) => s.name === sink), "retract") ? [{
        label: "Retract", of: `signals that match ${p.pattern}`, danger: true,
        does: () => confirmed(`Retract ${inside(p.pattern)}`, `This takes back all signals that match and were raised directly on sink ${inside(sink)}. Signals of operations stay.`, { action: "retract", sink, signal: p.pattern }),
      }] : []);
      return ["signals", { sink, pattern: p.pattern, key: p.key, limit: 100 }];
    },
    update(frame) {
      held.set(frame.held);
      text(held.title, frame.allHeld > frame.held.length ? `Held now: the oldest ${frame.held.length} of ${count(frame.allHeld)}` : "Held now");
      families.set(frame.families);
      tail.set([...(frame.signals ?? [])].sort((a, b) => b.seq - a.seq));
      skipped.hidden = !frame.skipped;
      text(skipped, `${many(frame.skipped, "signal")} came too fast to be shown.`);
    },
  };
}
