// --- What all views share

// all is the last overview: the names of coordinators and sinks, and what is allowed.
let all = { coordinators: [], sinks: [], queues: [], schedules: [] };
const coordinatorOf = (id) => (all.coordinators ?? []).find((c) => c.id === id);
const can = (thing, what) => (thing?.can ?? []).includes(what);

function header() {
  text($("title"), all.title || "Status");
  const failed = (all.coordinators ?? []).reduce((sum, c) => sum + (c.failed ?? 0), 0);
  document.title = joined([failed && `${count(failed)} failed`, shown.title, inside(all.title ?? "")], " – ") || "Status";
  $("readonly").hidden = !all.readOnly;
  const views = ["overview", "operations", "waits", "errors", "time", "signals"];
  if (all.queues?.length) views.push("queues");
  if (all.schedules?.length) views.push("schedules");
  const current = { operation: "operations", item: "queues", schedule: "schedules" }[route().view] ?? route().view;
  sync($("nav"), views, (v) => v, (v) => el("a", { href: "#" + v }, v[0].toUpperCase() + v.slice(1)),
    (a, v) => attr(a, "aria-current", v === current ? "page" : null));
}

const live = ["pending", "running", "suspended"];
const ended = ["succeeded", "failed", "cancelled", "refused", "dropped"];

function status(cell, name) {
  attr(cell, "data-status", name);
  text(cell, name);
}

// bar shows done of total. Inline style is forbidden, so it is an SVG.
function bar() {
  const part = svg("rect", { height: "100%", width: 0 });
  return {
    node: svg("svg", { class: "bar", "aria-hidden": "true" }, part),
    set(done, total) {
      const share = total > 0 ? Math.min(1, done / total) : 0;
      attr(part, "width", (share * 100).toFixed(1) + "%");
    },
  };
}

// line draws numbers of two minutes, newest at the right.
function line(node, numbers, width, height) {
  const top = Math.max(1, ...numbers);
  const step = width / 119;
  const at = numbers.map((n, i) => `${(width - (numbers.length - 1 - i) * step).toFixed(1)},${(height - 1 - (n / top) * (height - 3)).toFixed(1)}`);
  if (!node.firstChild) {
    attr(node, "viewBox", `0 0 ${width} ${height}`);
    node.append(svg("path", { class: "area" }), svg("path", { class: "curve" }));
  }
  const start = (width - Math.max(0, numbers.length - 1) * step).toFixed(1);
  attr(node.firstChild, "d", at.length ? `M${start},${height} L${at.join(" L")} L${width},${height} Z` : "");
  attr(node.lastChild, "d", at.length ? `M${at.join(" L")}` : "");
}

// waits lists reasons to wait. One that is another operation is a link to it.
function waits(cell, reasons) {
  const list = (reasons ?? []).map((r, i) => ({ ...r, to: toOperation(r.coordinator, r.id), i }));
  sync(cell, list, (r) => `${r.i} ${Boolean(r.to)}`,
    (r) => el("div", { class: "reason" }, el(r.to ? "a" : "span"), " ", el("span", { class: "dim" }), " ", el("span", { class: "dim" })),
    (node, r) => {
      attr(node, "data-kind", r.kind);
      const [what, since, until] = node.children;
      if (r.to) attr(what, "href", r.to);
      text(what, r.text);
      since.hidden = !isSet(r.since);
      age(since, r.since, null, "for");
      const ends = isSet(r.forced) ? ["runs anyway at", r.forced] : ["ends at", r.expires];
      until.hidden = !isSet(ends[1]);
      if (!until.hidden) text(until, `${ends[0]} ${clock.format(new Date(ends[1]))}`);
    });
}

// because shows the name of a signal, and the signals that led to it. A link leads to the operation that raised such a
// signal, or to the signals of this name.
function because(cell, s, sink) {
  if (!cell.firstChild) cell.append(el("span"), el("div", { class: "causes" }));
  const [name, causes] = cell.children;
  text(name, s.name);
  sync(causes, (s.causes ?? []).map((c, i) => ({ ...c, i })), (c) => c.i, () => el("div", {}, "because of ", el("span")), (node, c) => {
    const to = toOperation(c.coordinator, c.operation) ?? address("signals", { sink, pattern: c.name });
    link(node.lastChild, to, joined([inside(c.name), c.operation && `of operation ${c.operation}`], " "));
  });
}

function operationButtons(cell, operation) {
  const { coordinator } = operation;
  const of = `operation ${operation.id}`;
  const list = [];
  const what = joined([of, operation.key && `of key "${inside(operation.key)}"`, operation.status], ", ");
  const c = coordinatorOf(coordinator);
  if (live.includes(operation.status)) {
    if (can(c, "cancel")) list.push({ label: "Cancel", of, danger: true, does: () => confirmed(`Cancel ${of}`, `It is ${what}. Its context ends; it does not run again.`, { action: "cancel", coordinator, operation: operation.id }) });
  } else if (can(c, "evict")) {
    list.push({ label: "Evict", of, does: () => confirmed(`Evict ${of}`, `It is ${what}. It leaves the window, and its signals leave the sink.`, { action: "evict", coordinator, operation: operation.id }) });
  }
  buttons(cell, list);
}

// detail is what there is to say about an operation in one cell: its item, progress, waits, error.
function detail(cell, operation) {
  if (!cell.parts) {
    const b = bar();
    cell.parts = { item: el("div", { class: "item" }), bar: b, progress: el("span"), box: el("div", { class: "progress" }), waits: el("div", { class: "waits" }), error: el("div", { class: "error" }) };
    cell.parts.box.append(b.node, cell.parts.progress);
    cell.append(cell.parts.item, cell.parts.box, cell.parts.waits, cell.parts.error);
  }
  const { parts } = cell;
  text(parts.item, operation.itemText);
  const p = operation.progress;
  parts.box.hidden = !p;
  if (p) {
    parts.bar.set(p.done, p.total);
    text(parts.progress, p.text || (p.total ? `${count(p.done)} of ${count(p.total)}` : count(p.done)));
  }
  waits(parts.waits, operation.waitsFor);
  text(parts.error, operation.error);
}

const operationColumns = [
  rowHead("Operation", "id", (cell, o) => link(cell, toOperation(o.coordinator, o.id), joined([o.id, o.of && inside(o.of)], " of "))),
  column("Status", "status", (cell, o) => status(cell, o.status)),
  plain("Key", "key", (o) => o.key),
  plain("Lane", "lane", (o) => [o.lane, o.class].filter(Boolean).map(inside).join(" · ")),
  column("Age", "num age", (cell, o) => age(cell, o.enqueued, o.finished)),
  plain("Ended", "num time", (o) => (isSet(o.finished) ? clock.format(new Date(o.finished)) : "")),
  column("Detail", "detail", (cell, o) => detail(cell, o)),
  plain("Signals", "num count", (o) => o.signals || ""),
  column("Actions", "actions", (cell, o) => operationButtons(cell, o)),
];
const operationTable = (caption, empty) => table(caption, "operations", (o) => `${o.id} ${o.coordinator}`, operationColumns, empty);

// --- Filters: fields whose values are parameters of the address

function field(name, label, input) {
  attr(input, "name", name);
  return el("label", { class: "field" }, el("span", {}, label), input);
}

function choose(node, options) {
  sync(node, options, (o) => o[0], (o) => el("option", { value: o[0] }), (n, o) => text(n, o[1]));
}

// filters is a form that writes its fields into the address, 250 ms after the last key. Its box folds on a narrow screen.
function filters(...children) {
  let timer;
  const apply = () => {
    clearTimeout(timer);
    const { view, params } = route();
    for (const name of new Set([...form.elements].map((e) => e.name).filter(Boolean))) params[name] = "";
    for (const e of form.elements) {
      if (!e.name || (e.type === "checkbox" && !e.checked)) continue;
      params[e.name] = params[e.name] ? `${params[e.name]},${e.value}` : e.value;
    }
    delete params.after;
    history.replaceState(null, "", address(view, params));
    show();
  };
  const form = el("form", {
    class: "filters",
    oninput: (event) => {
      clearTimeout(timer);
      if (event.target.name === "coordinator") form.elements.lane.value = ""; // it has other lanes
      timer = setTimeout(apply, event.target.type === "text" ? 250 : 0);
    },
    onsubmit: (event) => {
      event.preventDefault();
      apply();
    },
  }, ...children);
  const wide = matchMedia("(min-width: 48.01rem)");
  form.box = el("details", { class: "fold", open: wide.matches }, el("summary", {}, "Filters"), form);
  wide.onchange = () => attr(form.box, "open", wide.matches);
  return form;
}

// refill writes the parameters into the fields, except the field somebody types in.
function refill(form, params) {
  const set = [...new Set([...form.elements].map((e) => e.name))].filter((name) => params[name] && !["coordinator", "sink"].includes(name)).length;
  text(form.box.firstChild, set ? `Filters: ${set} set` : "Filters");
  for (const e of form.elements) {
    if (!e.name || e === document.activeElement) continue;
    if (e.type === "checkbox") e.checked = (params[e.name] ?? "").split(",").includes(e.value);
    else if (e.tagName !== "SELECT" || [...e.options].some((o) => o.value === (params[e.name] ?? ""))) e.value = params[e.name] ?? "";
  }
}

const input = (placeholder) => el("input", { type: "text", placeholder, autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
