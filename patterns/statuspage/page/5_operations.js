// --- Operations

function operations() {
  const which = el("select");
  const lane = el("select");
  const statuses = el("fieldset", {}, el("legend", {}, "Status"),
    ...[...live, ...ended].map((s) => el("label", { class: "check" }, el("input", { type: "checkbox", name: "status", value: s }), s)));
  const order = el("select");
  choose(order, [["", "newest first"], ["oldest", "oldest first"]]);
  const form = filters(field("find", "Find in all coordinators", input("id, key or error")), field("coordinator", "Coordinator", which), field("key", "Key", input("any")),
    field("lane", "Lane", lane), field("signal", "Signal", input("any, or a pattern")), field("order", "Order", order), statuses);
  let of = "";
  const rows = operationTable("Operations", "No operation matches.");
  const first = el("a", {}, "First page");
  const next = el("a", {}, "Next 50");
  const pages = el("nav", { class: "pages", "aria-label": "Pages" }, first, next);
  let params = {};
  return {
    title: "Operations",
    nodes: [form.box, rows.node, pages],
    feed(p) {
      params = p;
      of = p.coordinator || all.coordinators?.[0]?.id || "";
      choose(which, (all.coordinators ?? []).map((c) => [c.id, c.id === c.name ? c.name : `${inside(c.name)} (${inside(c.id)})`]));
      choose(lane, [["", "any"], ...(coordinatorOf(of)?.lanes ?? []).map((l) => [l.name, l.name])]);
      which.parentNode.hidden = Boolean(p.find);
      lane.parentNode.hidden = p.find || lane.options.length < 2;
      refill(form, { ...p, coordinator: of });
      const scope = p.find ? { find: p.find } : { coordinator: of, lane: p.lane, after: p.after };
      return ["operations", { ...scope, status: p.status, key: p.key, signal: p.signal, order: p.order || "newest", limit: 50 }];
    },
    update(frame) {
      const list = frame.operations ?? [];
      if (!params.find) of = frame.coordinator || of;
      const where = params.find ? `with ${inside(params.find)}` : `of ${coordinatorOf(of)?.name ?? of}`;
      text(rows.title, `Operations ${where}: ${count(frame.matches)}${frame.more ? " or more" : ""}${list.length < frame.matches ? `, ${list.length} of them here` : ""}`);
      rows.set(list.map((o) => ({ ...o, of: params.find && coordinatorOf(o.coordinator)?.name })));
      first.hidden = !params.after;
      attr(first, "href", address("operations", { ...params, after: "" }));
      next.hidden = !frame.next;
      attr(next, "href", frame.next ? address("operations", { ...params, coordinator: of, after: frame.next }) : null);
    },
  };
}

// --- One operation

function operation() {
  let of = "";
  let id = "";
  const head = el("p", { class: "buttons" });
  const list = el("dl", { class: "facts" });
  const why = el("section", { class: "why", "aria-labelledby": "why" }, el("h2", { id: "why" }, "Why it waits"), el("div", { class: "waits" }));
  const life = timeLine();
  const signals = table("Signals", "signals own", (s) => s.seq, [
    plain("After", "num", (s) => span(s.offsetMs)),
    rowHead("Signal", "name", (cell, s) => because(cell, s, coordinatorOf(of)?.sink)),
    plain("Key", "key", (s) => s.key),
    plain("Held", "held", (s) => (s.held ? "held" : "")),
    plain("Payload", "type", (s) => s.payload),
  ], "It has raised no signals.");
  const values = table("Values", "small", (v) => v.name, [rowHead("Value", "name", (cell, v) => text(cell, v.name)), plain("Type", "type", (v) => v.type)]);
  const parent = operationTable("Parent");
  const children = operationTable("Children");
  const missed = el("p", { class: "note", hidden: true }, "It may have more children than these.");
  const body = el("div", { hidden: true }, head, list, why, life.node, signals.node, values.node, parent.node, children.node, missed);
  return {
    title: "Operation",
    nodes: [body],
    feed(p) {
      of = p.coordinator;
      id = p.id;
      text($("heading"), `Operation ${id ?? ""}`);
      return ["operation", { coordinator: of, id }];
    },
    update(frame) {
      const o = frame.operation;
      this.title = `Operation ${o.id}`;
      body.hidden = false;
      text($("heading"), `Operation ${o.id} of ${coordinatorOf(of)?.name ?? of}`);
      operationButtons(head, o);
      const p = o.progress;
      const cause = frame.cause;
      facts(list, [
        { name: "status", set: (cell) => status(cell, o.status) },
        { name: isSet(o.finished) ? "took" : "age", set: (cell) => age(cell, o.enqueued, o.finished) },
        o.key && fact("key", o.key),
        o.lane && fact("lane", o.lane),
        o.class && fact("class", o.class),
        o.item && fact("item", joined([o.itemText && inside(o.itemText), o.item], " · "), o.itemText ? "" : "type"),
        o.parent && { name: "parent", set: (cell) => link(cell, toOperation(of, o.parent), `operation ${o.parent}`) },
        { name: "enqueued", set: (cell) => moment(cell, o.enqueued) },
        isSet(o.started) && { name: "started", set: (cell) => moment(cell, o.started) },
        isSet(o.finished) && { name: "finished", set: (cell) => moment(cell, o.finished) },
        p && fact("progress", p.text || `${count(p.done)} of ${count(p.total)}`),
        o.pins && fact("pins", o.pins),
        cause && { name: "cause", set: (cell) => link(cell, toOperation(cause.coordinator, cause.operation), `${inside(cause.name)}${cause.operation ? ` of operation ${cause.operation}` : ""}`) },
        o.error && fact("error", o.error, "error"),
      ].filter(Boolean));
      const reasons = frame.explanation?.reasons ?? [];
      why.hidden = reasons.length === 0;
      waits(why.lastChild, reasons);
      this.tick = () => life.set(o, frame.signals ?? []);
      this.tick();
      signals.set(frame.signals);
      values.set(frame.values);
      parent.set(frame.parent ? [frame.parent] : []);
      children.set(frame.children);
      missed.hidden = !frame.missed;
    },
  };
}

// steps are distances of marks on a scale, in ms.
const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5, 144e5, 216e5, 432e5, 864e5];

// timeLine draws the waits, the run and the signals of an operation on a scale. The table below says the same.
function timeLine() {
  const waited = svg("rect", { class: "waited", y: 14, height: 8, x: 0 });
  const ran = svg("rect", { class: "ran", y: 14, height: 8 });
  const marks = svg("g", { class: "marks" });
  const scale = svg("g", { class: "scale" });
  const picture = svg("svg", { class: "life", "aria-hidden": "true" }, scale, waited, ran, marks);
  const words = el("figcaption");
  return {
    node: el("figure", { class: "timeline" }, picture, words),
    set(o, signals) {
      const start = Date.parse(o.enqueued);
      const last = signals.length ? signals[signals.length - 1].offsetMs : 0;
      const began = isSet(o.started) ? Date.parse(o.started) - start : null;
      const end = Math.max(1, isSet(o.finished) ? Date.parse(o.finished) - start : Math.max(now() - start, began ?? 0), last);
      const x = (ms) => ((Math.max(0, Math.min(ms, end)) / end) * 100).toFixed(2) + "%";
      const wait = began ?? end;
      attr(waited, "width", x(wait));
      attr(ran, "x", x(wait));
      attr(ran, "width", began === null ? 0 : x(end - began));
      attr(ran, "data-status", o.status);
      sync(marks, signals, (s) => s.seq, (s) => svg("line", { y1: 4, y2: 32 }, svg("title", {}, s.name)), (mark, s) => {
        attr(mark, "x1", x(s.offsetMs));
        attr(mark, "x2", x(s.offsetMs));
        attr(mark, "class", s.held ? "held" : "raised");
      });
      const step = steps.find((s) => end / s <= 5) ?? 864e5 * Math.ceil(end / 864e5 / 5);
      sync(scale, Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step), (ms) => ms,
        (ms) => svg("g", {}, svg("line", { y1: 0, y2: 38 }), svg("text", { y: 50 }, ms ? span(ms).replace(/\.0 s| 00 [ms]/g, (s) => (s === ".0 s" ? " s" : "")) : "0")),
        (mark, ms) => {
          const [line, label] = mark.children;
          attr(line, "x1", x(ms));
          attr(line, "x2", x(ms));
          attr(label, "x", x(ms));
          attr(label, "text-anchor", ms === 0 ? "start" : ms > end * 0.9 ? "end" : "middle");
        });
      text(words, [began === null ? `waits for ${span(end)}` : `waited ${span(wait)}, then ${isSet(o.finished) ? "ran" : "has run for"} ${span(end - began)}`, many(signals.length, "signal")].join("; "));
    },
  };
}
