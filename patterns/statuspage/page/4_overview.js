// --- Overview

function coordinatorCard(first) {
  const heading = "c-" + first.id;
  const part = {
    name: el("h2", { id: heading }),
    badges: el("span", { class: "badges" }),
    error: el("p", { class: "error" }),
    buttons: el("span", { class: "buttons" }),
    numbers: el("dl", { class: "numbers" }),
    load: bar(),
    chart: svg("svg", { class: "chart", preserveAspectRatio: "none", "aria-hidden": "true" }),
    rate: el("figcaption"),
    outcomes: el("dl", { class: "outcomes" }),
    lanes: table("Lanes", "small", (l) => l.name, laneColumns("Lane", (l) => address("operations", { coordinator: first.id, lane: l.name }))),
    classes: table("Classes", "small", (l) => l.name, classColumns),
    shadows: table("Shadows", "small shadow", (s) => s.of, shadowColumns),
    gates: table("Gates", "small gates", (g) => [g.kind, g.lane, g.class, g.pattern].join("\n"), gateColumns(first)),
    limit: null,
  };
  part.limit = limitForm(first.id);
  const node = el("section", { class: "card", "aria-labelledby": heading },
    el("div", { class: "head" }, part.name, part.badges, part.buttons), part.error,
    part.load.node, part.numbers,
    el("figure", {}, part.chart, part.rate),
    part.outcomes, part.lanes.node, part.classes.node, part.shadows.node, part.gates.node, part.limit.node);
  node.card = part;
  return node;
}

const laneColumns = (head, to) => [
  rowHead(head, "name", (cell, l) => link(cell, to?.(l), l.name || "(no name)")),
  plain("Pending", "num", (l) => count(l.pending)),
  plain("Running", "num", (l) => count(l.running)),
  plain("Limit", "num", (l) => (l.limit > 0 ? count(l.limit) : "–")),
];

const rateText = (r, of) => r && joined([`${count(r.perSecond)}${of}/s`, r.debt > 0 && "debt " + count(Math.ceil(r.debt))], ", ");
const classColumns = [
  ...laneColumns("Class"),
  plain("Rates", "rates", (c) => joined([rateText(c.calls, ""), rateText(c.cost, " cost"), isSet(c.next) && `token in ${span(Date.parse(c.next) - now())}`], ", ") || "–"),
];

// A shadow is limits that only count.
const shadowsOf = (c) => [c, ...(c.classes ?? [])].filter((s) => s.shadow).map((s) => ({ ...s.shadow, of: s === c ? "all" : s.name }));
const shadowColumns = [
  rowHead("Shadow of", "name", (cell, s) => text(cell, s.of)),
  plain("Limits", "rates", (s) => joined([s.limits.limit && many(s.limits.limit, "slot"), s.limits.rate && `${count(s.limits.rate.PerSecond)}/s`, s.limits.costRate && `${count(s.limits.costRate.PerSecond)} cost/s`], ", ")),
  plain("Would wait now", "num", (s) => count(s.waiting)),
  plain("In all", "num", (s) => `${count(s.waited)} of ${count(s.started)}`),
  plain("Longest", "num", (s) => span(s.longest / 1e6)),
  plain("Would be refused", "num", (s) => count(s.refused)),
];

const gateWords = { refused: "refuses", deferred: "defers", trial: "limits" };
const gateColumns = (c) => [
  column("Gate", "gate", (cell, g) => {
    attr(cell, "data-closed", String(Boolean(g.closed)));
    text(cell, g.closed ? "closed" : g.matches ? "open" : "open, never matched");
  }),
  rowHead("Rule", "name", (cell, g) => link(cell, address("signals", { sink: sinkOf(c), pattern: g.pattern }), `${gateWords[g.kind] ?? g.kind}${g.lane ? " lane " + inside(g.lane) : ""}${g.class ? " class " + inside(g.class) : ""} on ${inside(g.pattern)}`)),
  column("By", "by", (cell, g) => {
    const s = g.closed ? g.signal : null;
    const to = toOperation(s?.coordinator, s?.operation) ?? address("signals", { sink: sinkOf(c), pattern: s?.name });
    link(cell, s ? to : null, s ? inside(s.name) + (s.key ? ` (${inside(s.key)})` : "") : "");
  }),
];
const sinkOf = (c) => coordinatorOf(c.id)?.sink || undefined;

function limitForm(id) {
  const value = el("input", { type: "number", min: 1, max: 1000000, required: true, inputmode: "numeric" });
  let typed = false; // somebody is about to set another one
  const node = el("form", {
    class: "limit",
    oninput: () => (typed = true),
    onfocusout: (event) => node.contains(event.relatedTarget) || (typed = false),
    onsubmit: async (event) => {
      event.preventDefault();
      const limit = Number(value.value);
      await act(`limit ${limit} for ${inside(coordinatorOf(id)?.name)}`, { action: "limit", coordinator: id, limit });
      typed = false;
    },
  }, field("limit", "Limit", value), el("button", { type: "submit" }, "Set limit"));
  return {
    node,
    set(c) {
      node.hidden = !can(c, "limit");
      attr(value, "aria-label", `Limit of ${c.name}`);
      if (!typed && value.value !== String(c.limit)) value.value = c.limit;
    },
  };
}

function updateCard(node, c) {
  const p = node.card; // not "part", which elements have
  const to = (status) => address("operations", { coordinator: c.id, status });
  link(p.name, address("operations", { coordinator: c.id }), c.name);
  text(p.error, c.error);
  sync(p.badges, [c.paused && "paused", c.closed && "closed"].filter(Boolean), (b) => b, (b) => el("span", { class: "badge warn" }, b), () => {});
  const list = [];
  if (!c.paused && can(c, "pause")) list.push({ label: "Pause", of: c.name, does: () => act(`pause ${inside(c.name)}`, { action: "pause", coordinator: c.id }) });
  if (c.paused && can(c, "resume")) list.push({ label: "Resume", of: c.name, does: () => act(`resume ${inside(c.name)}`, { action: "resume", coordinator: c.id }) });
  buttons(p.buttons, list);
  p.load.set(c.running, c.limit);
  facts(p.numbers, [
    { name: "running", set: (cell) => link(cell, to("running"), `${count(c.running)} of ${count(c.limit)}`) },
    { name: "pending", set: (cell) => link(cell, to("pending"), count(c.pending)) },
    { name: "suspended", set: (cell) => link(cell, to("suspended"), count(c.suspended)) },
    { name: "oldest waits", set: (cell) => age(cell, c.oldest) },
  ]);
  const rates = c.throughput ?? [];
  line(p.chart, rates, 240, 40);
  text(p.rate, rates.length ? `${count(rates[rates.length - 1])} a second, ${count(Math.max(...rates))} at most in 2 minutes` : "throughput: counting");
  facts(p.outcomes, [
    ...ended.map((s) => ({ name: s, cls: c[s] ? "some " + s : "", set: (cell) => link(cell, to(s), count(c[s])) })),
    fact("rejected", count(c.rejected)),
  ]);
  ended.forEach((s) => attr(p.outcomes.nodes.get(s), "class", c[s] ? "some " + s : ""));
  p.lanes.set(c.lanes);
  p.classes.set(c.classes);
  p.shadows.set(shadowsOf(c));
  p.gates.set(c.gates);
  for (const t of [p.lanes, p.classes, p.shadows, p.gates]) t.node.hidden = t.node.firstChild.hidden;
  p.limit.set(c);
}

const outcomeWords = {
  rejected: "Never accepted: there was no room, the coordinator was closed, a signal matched CancelOn, or the context of the caller had ended. There is no operation. The code that calls Enqueue got the error.",
  refused: "Accepted, but a signal matched CancelOn when the operation could start. The error of the operation names the signal. The table Gates shows whether the signal is still there.",
  dropped: "Accepted, but it made room for a newer item, because Options.DropOldest is set and the queue was full. Perhaps the queue is too short, or the work is too slow.",
};

function overview() {
  const words = el("details", {}, el("summary", {}, "What rejected, refused and dropped mean"),
    el("dl", { class: "words" }, ...Object.entries(outcomeWords).flatMap(([name, says]) => [el("dt", {}, name), el("dd", {}, says)])));
  const cards = el("div", { class: "cards" });
  const none = el("p", { class: "empty" }, "The program shows no coordinators.");
  const program = el("p", { class: "note" });
  const sinks = table("Sinks", "sinks", (s) => s.name, [
    rowHead("Sink", "name", (cell, s) => link(cell, address("signals", { sink: s.name }), s.name)),
    plain("Raised", "num", (s) => count(s.raised)),
    plain("Stored", "num", (s) => `${count(s.stored)} of ${count(s.capacity)}`),
    plain("Held", "num", (s) => count(s.held)),
    plain("Evicted", "num", (s) => count(s.evicted)),
    plain("Expired", "num", (s) => count(s.expired)),
    plain("Blocked", "num", (s) => count(s.blocked)),
    plain("Panics", "num", (s) => count(s.panics)),
    plain("Age limit", "num", (s) => (s.maxAgeMs > 0 ? span(s.maxAgeMs) : "none")),
  ]);
  return {
    title: "Overview",
    nodes: [program, cards, words, none, sinks.node],
    feed: () => ["overview", {}],
    update(frame) {
      all = frame;
      const list = frame.coordinators ?? [];
      none.hidden = list.length > 0;
      const p = frame.program;
      text(program, `${many(p.goroutines, "goroutine")} · heap ${(p.heapBytes / 1e6).toFixed(1)} MB · ${many(p.gcs, "GC cycle")}, ${p.gcPercent.toFixed(1)} % of the processor time`);
      sync(cards, list, (c) => c.id, coordinatorCard, updateCard);
      sinks.set(frame.sinks);
    },
  };
}
