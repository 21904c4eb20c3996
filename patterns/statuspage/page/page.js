"use strict";

// The status page. It reads the JSON under api/ and nothing else; API.md beside the Go code describes it.
//
// All names, keys and errors come from the program that is shown, so nobody trusts them: they are written with
// textContent and setAttribute, never as HTML. Frames change the page in place, so that focus, selection and
// scroll position stay.

// --- Elements

const $ = (id) => document.getElementById(id);

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else attr(node, name, value);
  }
  node.append(...children);
  return node;
}
const el = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);
const svg = (tag, attrs, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);

// text and attr write only what changes: a write ends a selection.
function text(node, value) {
  value = String(value ?? "");
  if (node.textContent !== value) node.textContent = value;
}
function attr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (value === true) node.setAttribute(name, "");
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// inside isolates a text from outside, so that it does not turn the sentence around it.
const inside = (value) => (/[^\0-\x7f]/.test(value) ? `\u2068${value.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")}\u2069` : value);

// link makes the only child of node a link, or plain text if there is no address.
function link(node, address, label) {
  let a = node.firstElementChild;
  if (!address) return text(node, label);
  if (!a) {
    node.textContent = "";
    a = node.appendChild(el("a"));
  }
  attr(a, "href", address);
  text(a, label);
}

// sync gives parent a child for each item, in order, and keeps the nodes of items that it knows.
function sync(parent, items, key, make, update) {
  const nodes = (parent.nodes ??= new Map());
  const wanted = new Set(items.map((item) => String(key(item))));
  const focused = document.activeElement;
  for (const [k, node] of nodes) {
    if (wanted.has(k)) continue;
    nodes.delete(k);
    // The focus goes to a link nearby: never to the button of another item.
    if (node.contains(focused)) {
      const near = node.nextElementSibling ?? node.previousElementSibling;
      (near?.querySelector("a") ?? $("main")).focus({ preventScroll: true });
    }
    node.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = String(key(item));
    let node = nodes.get(k);
    if (!node) nodes.set(k, (node = make(item)));
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, item);
  }
  if (parent.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

// A column of a table is {head, cls, row, set(cell, item)}; row makes its cells headers of rows.
function table(caption, cls, key, columns, empty) {
  const title = el("caption", {}, caption);
  const body = el("tbody");
  const full = el("table", { class: cls }, title,
    el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { scope: "col", class: c.cls }, c.head)))), body);
  const none = el("p", { class: "empty" }, empty ?? "");
  return {
    node: el("div", { class: "table" }, full, none),
    title,
    set(items) {
      items ??= [];
      sync(body, items, key,
        () => el("tr", {}, ...columns.map((c) => el(c.row ? "th" : "td", { scope: c.row ? "row" : null, class: c.cls, "data-head": c.head }))),
        (row, item) => columns.forEach((c, i) => c.set(row.children[i], item)));
      full.hidden = items.length === 0;
      none.hidden = items.length > 0 || !empty;
    },
  };
}
const column = (head, cls, set) => ({ head, cls, set });
const plain = (head, cls, value) => column(head, cls, (cell, item) => text(cell, value(item)));
const rowHead = (head, cls, set) => ({ head, cls, set, row: true });

// facts is a list of names with values. One is {name, cls, set(cell)}.
function facts(node, list) {
  sync(node, list, (f) => f.name,
    (f) => el("div", { class: f.cls }, el("dt", {}, f.name), el("dd")),
    (div, f) => f.set(div.lastChild));
}
const fact = (name, value, cls) => ({ name, cls, set: (cell) => text(cell, value) });

const button = (label, cls, does) => el("button", { type: "button", class: cls, onclick: does }, label);

// buttons shows a list of {label, of, danger, does}, or false; of says what it acts on.
function buttons(node, list) {
  sync(node, list.filter(Boolean), (b) => b.label,
    (b) => button(b.label, b.danger ? "danger" : "", (event) => event.currentTarget.does()),
    (node, b) => {
      node.does = b.does;
      attr(node, "aria-label", `${b.label} ${b.of}`);
    });
}

// --- Numbers and times

const grouped = new Intl.NumberFormat("en");
const joined = (list, by) => list.filter(Boolean).join(by);
const count = (n) => grouped.format(n ?? 0);
const many = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

// span is a duration in words of about equal length.
function span(ms) {
  if (ms < 0) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two((s % 3600) / 60)} m`;
  return `${Math.floor(s / 86400)} d ${two((s % 86400) / 3600)} h`;
}

const when = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-CA", { dateStyle: "short" });
const isSet = (time) => Boolean(time) && !time.startsWith("0001-");

// moment writes a point in time: the hour, and the day if it is another one.
function moment(node, time, never) {
  if (!isSet(time)) return text(node, never ?? "–");
  let t = node.firstElementChild;
  if (!t) {
    node.textContent = "";
    t = node.appendChild(el("time"));
  }
  const date = new Date(time);
  const far = Math.abs(date - Date.now()) > 12 * 3600e3;
  attr(t, "datetime", time);
  attr(t, "title", time);
  text(t, (far ? day.format(date) + " " : "") + when.format(date));
}

// Durations are of the server's clock, which every frame tells.
let ahead = 0; // of this machine's clock, in ms
const now = () => Date.now() + ahead;

// age writes the time from one moment to another, or to now, which grows; words are in front.
function age(node, from, until, words) {
  const grows = isSet(from) && !isSet(until);
  node.age = { from, words: words ? words + " " : "" };
  attr(node, "data-grows", grows);
  if (!isSet(from)) return text(node, "–");
  text(node, node.age.words + span((grows ? now() : Date.parse(until)) - Date.parse(from)));
}
setInterval(() => {
  if (!feed.fresh || frozen || document.hidden) return;
  for (const node of document.querySelectorAll("[data-grows]")) age(node, node.age.from, null, node.age.words.trim());
  shown?.tick?.();
}, 1000);

// --- Addresses

const query = (params) => new URLSearchParams(Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
function address(view, params) {
  const q = query(params ?? {});
  return "#" + view + (q ? "?" + q : "");
}
const toOperation = (coordinator, id) => (coordinator && id ? address("operation", { coordinator, id }) : null);

// --- The server

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, init) {
  const answer = await fetch(path, { cache: "no-store", ...init });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.error || `the server answers ${answer.status}`);
  return body;
}

// act does something on the server, and says how it went.
async function act(words, action) {
  try {
    const { done } = await ask("api/act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(action) });
    say(done ? `Done: ${words}` : `Nothing to do: ${words}`);
  } catch (error) {
    say(`Not done: ${words}: ${inside(error.message)}`, true);
  }
  shown?.acted?.();
  feed.soon();
}

// confirmed asks before it acts.
function confirmed(words, why, action) {
  text($("ask-title"), words + "?");
  text($("ask-text"), why);
  text($("ask-yes"), words);
  $("ask").does = () => act(words, action);
  $("ask").showModal();
}
$("ask-no").addEventListener("click", () => $("ask").close());
$("ask-yes").addEventListener("click", () => {
  $("ask").close();
  $("ask").does();
});

function say(words, bad) {
  const node = $("said");
  text(node, words);
  attr(node, "class", bad ? "bad" : null);
  clearTimeout(node.timer);
  node.timer = setTimeout(() => text(node, ""), bad ? 15000 : 6000);
}

// feed brings the frames of a view: by a stream, or every two seconds if the server has none left.
const feed = {
  fresh: false, // what comes is what the server says now
  said: ["", "connecting"],
  view: "",
  params: {},
  tries: 0,

  open(view, params) {
    this.close();
    this.view = view;
    this.params = params;
    this.tries = 0;
    this.first = true; // frame of the view: shown even if the page is frozen
    this.stream();
  },
  close() {
    this.source?.close();
    this.request?.abort();
    clearTimeout(this.timer);
    this.source = this.request = null;
  },
  later(ms, does) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this[does](), ms);
  },
  soon() {
    if (!this.source && !document.hidden) this.later(0, "poll");
  },

  stream() {
    this.close();
    if (!this.view) return;
    if (document.hidden) return this.state("hidden", "paused while hidden");
    const source = new EventSource("api/stream?" + query({ view: this.view, ...this.params }));
    this.source = source;
    source.onmessage = (event) => {
      if (source !== this.source) return;
      this.tries = 0;
      this.state("live", "live");
      this.show(JSON.parse(event.data));
    };
    // The event does not say why. A request without a stream does.
    source.onerror = () => {
      if (source !== this.source) return;
      this.close();
      this.poll();
    };
  },

  async poll() {
    this.request?.abort();
    const request = (this.request = new AbortController());
    let frame;
    try {
      frame = await ask(`api/${this.view}?` + query(this.params), { signal: request.signal });
    } catch (error) {
      if (request === this.request) this.failed(error);
      return;
    }
    if (request !== this.request) return;
    this.tries++;
    this.state("polling", "polling");
    this.later(2000, this.tries % 15 === 0 ? "stream" : "poll");
    this.show(frame);
  },
  failed(error) {
    if (error instanceof Refused && error.status !== 503) {
      this.state("lost", "refused");
      trouble(error.message);
      return this.later(10000, "stream");
    }
    this.state("lost", "lost, trying again");
    this.tries++;
    this.later(Math.min(8000, 250 * 2 ** Math.min(this.tries, 6)) * (0.75 + Math.random() / 2), "stream");
  },

  state(name, words) {
    this.fresh = name === "live" || name === "polling";
    this.said = [name, words];
    if (frozen && this.fresh) name = words = "frozen";
    attr($("state"), "data-state", name);
    text($("state"), words);
    document.body.classList.toggle("stale", name === "lost");
  },
  show(frame) {
    this.waiting = frame;
    if (frozen && !this.first) return;
    this.waiting = null;
    this.first = false;
    ahead = Date.parse(frame.time) - Date.now();
    trouble(frame.error);
    if (!frame.error) shown.update(frame);
    header();
  },
};

// trouble says why the view is old: its operation is gone, for example.
function trouble(words) {
  $("trouble").hidden = !words;
  text($("trouble"), words);
}

let frozen = false;
$("freeze").addEventListener("click", () => {
  frozen = !frozen;
  attr($("freeze"), "aria-pressed", String(frozen));
  feed.state(...feed.said);
  if (!frozen && feed.waiting) feed.show(feed.waiting);
});

document.addEventListener("visibilitychange", () => feed.stream());
addEventListener("pagehide", () => feed.close());
addEventListener("pageshow", (event) => event.persisted && feed.stream());

// --- What all views share

// all is the last overview: the names of coordinators and sinks, and what is allowed.
let all = { coordinators: [], sinks: [], queues: [], schedules: [] };
const coordinatorOf = (id) => (all.coordinators ?? []).find((c) => c.id === id);
const can = (thing, what) => (thing?.can ?? []).includes(what);

function header() {
  text($("title"), all.title || "Status");
  document.title = joined([shown.title, inside(all.title ?? "")], " – ") || "Status";
  $("readonly").hidden = !all.readOnly;
  const views = ["overview", "operations", "signals"];
  if (all.queues?.length) views.push("queues");
  if (all.schedules?.length) views.push("schedules");
  const current = route().view === "operation" ? "operations" : route().view;
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

// detail is what there is to say about an operation in one cell: progress, waits, error.
function detail(cell, operation) {
  if (!cell.parts) {
    const b = bar();
    cell.parts = { bar: b, progress: el("span"), box: el("div", { class: "progress" }), waits: el("div", { class: "waits" }), error: el("div", { class: "error" }) };
    cell.parts.box.append(b.node, cell.parts.progress);
    cell.append(cell.parts.box, cell.parts.waits, cell.parts.error);
  }
  const { parts } = cell;
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
  rowHead("Operation", "id", (cell, o) => link(cell, toOperation(o.coordinator, o.id), o.id)),
  column("Status", "status", (cell, o) => status(cell, o.status)),
  plain("Key", "key", (o) => o.key),
  plain("Lane", "lane", (o) => [o.lane, o.class].filter(Boolean).map(inside).join(" · ")),
  column("Age", "num age", (cell, o) => age(cell, o.enqueued, o.finished)),
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

// filters is a form that writes its fields into the address, 250 ms after the last key.
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
  return form;
}

// refill writes the parameters into the fields, except the field somebody types in.
function refill(form, params) {
  for (const e of form.elements) {
    if (!e.name || e === document.activeElement) continue;
    if (e.type === "checkbox") e.checked = (params[e.name] ?? "").split(",").includes(e.value);
    else if (e.tagName !== "SELECT" || [...e.options].some((o) => o.value === (params[e.name] ?? ""))) e.value = params[e.name] ?? "";
  }
}

const input = (placeholder) => el("input", { type: "text", placeholder, autocomplete: "off", spellcheck: "false", autocapitalize: "off" });

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
    gates: table("Gates", "small gates", (g) => [g.kind, g.lane, g.class, g.pattern].join("\n"), gateColumns(first)),
    limit: null,
  };
  part.limit = limitForm(first.id);
  const node = el("section", { class: "card", "aria-labelledby": heading },
    el("div", { class: "head" }, part.name, part.badges, part.buttons), part.error,
    part.load.node, part.numbers,
    el("figure", {}, part.chart, part.rate),
    part.outcomes, part.lanes.node, part.classes.node, part.gates.node, part.limit.node);
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
  p.gates.set(c.gates);
  for (const t of [p.lanes, p.classes, p.gates]) t.node.hidden = t.node.firstChild.hidden;
  p.limit.set(c);
}

function overview() {
  const cards = el("div", { class: "cards" });
  const none = el("p", { class: "empty" }, "The program shows no coordinators.");
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
    nodes: [cards, none, sinks.node],
    feed: () => ["overview", {}],
    update(frame) {
      all = frame;
      const list = frame.coordinators ?? [];
      none.hidden = list.length > 0;
      sync(cards, list, (c) => c.id, coordinatorCard, updateCard);
      sinks.set(frame.sinks);
    },
  };
}

// --- Operations

function operations() {
  const which = el("select");
  const lane = el("select");
  const statuses = el("fieldset", {}, el("legend", {}, "Status"),
    ...[...live, ...ended].map((s) => el("label", { class: "check" }, el("input", { type: "checkbox", name: "status", value: s }), s)));
  const order = el("select");
  choose(order, [["", "oldest first"], ["newest", "newest first"]]);
  const form = filters(field("coordinator", "Coordinator", which), field("key", "Key", input("any")),
    field("lane", "Lane", lane), field("signal", "Signal", input("any, or a pattern")), field("order", "Order", order), statuses);
  let of = "";
  const rows = operationTable("Operations", "No operation matches.");
  const first = el("a", {}, "First page");
  const next = el("a", {}, "Next 50");
  const pages = el("nav", { class: "pages", "aria-label": "Pages" }, first, next);
  let params = {};
  return {
    title: "Operations",
    nodes: [form, rows.node, pages],
    feed(p) {
      params = p;
      of = p.coordinator || all.coordinators?.[0]?.id || "";
      choose(which, (all.coordinators ?? []).map((c) => [c.id, c.id === c.name ? c.name : `${inside(c.name)} (${inside(c.id)})`]));
      choose(lane, [["", "any"], ...(coordinatorOf(of)?.lanes ?? []).map((l) => [l.name, l.name])]);
      lane.parentNode.hidden = lane.options.length < 2;
      refill(form, { ...p, coordinator: of });
      return ["operations", { coordinator: of, status: p.status, key: p.key, lane: p.lane, signal: p.signal, order: p.order, after: p.after, limit: 50 }];
    },
    update(frame) {
      of = frame.coordinator || of;
      const list = frame.operations ?? [];
      text(rows.title, `Operations of ${coordinatorOf(of)?.name ?? of}`);
      rows.set(list);
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
    rowHead("Signal", "name", (cell, s) => text(cell, s.name)),
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
        o.item && fact("item", o.item, "type"),
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

// timeLine draws the waits, the run and the signals of an operation. The table below says the same.
function timeLine() {
  const waited = svg("rect", { class: "waited", y: 14, height: 8, x: 0 });
  const ran = svg("rect", { class: "ran", y: 14, height: 8 });
  const marks = svg("g");
  const picture = svg("svg", { class: "life", "aria-hidden": "true" }, waited, ran, marks);
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
      text(words, [began === null ? `waits for ${span(end)}` : `waited ${span(wait)}, then ${isSet(o.finished) ? "ran" : "has run for"} ${span(end - began)}`, many(signals.length, "signal")].join("; "));
    },
  };
}

// --- Signals

function signals() {
  const which = el("select");
  const form = filters(field("sink", "Sink", which), field("pattern", "Pattern", input("all, or like order.*")), field("key", "Key", input("any")));
  const raisedBy = (cell, s) => link(cell, toOperation(s.coordinator, s.operation), s.operation ? `${inside(s.source || s.coordinator || "")} ${s.operation}` : s.source || "sink");
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
  ], "Nobody holds a fact.");
  let params = {};
  const families = table("Families", "small families", (f) => f.family, [
    rowHead("Family", "name", (cell, f) => link(cell, f.family ? address("signals", { ...params, pattern: `${f.family},${f.family}.*,${f.family}:*` }) : null, f.family || "(all others)")),
    plain("Signals", "num", (f) => count(f.count)),
  ], "No signals.");
  const tail = table("Newest first", "signals", (s) => s.seq, [
    column("Time", "time", (cell, s) => moment(cell, s.time)),
    rowHead("Signal", "name", (cell, s) => text(cell, s.name)),
    plain("Key", "key", (s) => s.key),
    column("By", "by", raisedBy),
    plain("Payload", "type", (s) => joined([s.payload, s.held && "held"], " · ")),
  ], "No signal matches.");
  const skipped = el("p", { class: "note", hidden: true });
  const retract = el("span", { class: "buttons" });
  form.append(retract);
  return {
    title: "Signals",
    nodes: [form, el("div", { class: "columns" }, el("div", {}, held.node, skipped, tail.node), families.node)],
    feed(p) {
      params = p;
      choose(which, (all.sinks ?? []).map((s) => [s.name, s.name]));
      const sink = p.sink || all.sinks?.[0]?.name;
      refill(form, { ...p, sink });
      buttons(retract, p.pattern && can((all.sinks ?? []).find((s) => s.name === sink), "retract") ? [{
        label: "Retract", of: `facts that match ${p.pattern}`, danger: true,
        does: () => confirmed(`Retract ${inside(p.pattern)}`, `All facts that match and were raised directly on sink ${inside(sink)} are taken back. Those of operations stay.`, { action: "retract", sink, signal: p.pattern }),
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

// --- Queues

function queues() {
  const list = table("Queues", "queues", (q) => q.name, [
    rowHead("Queue", "name", (cell, q) => link(cell, address("queues", { queue: q.name }), q.name)),
    column("Items", "states", (cell, q) => {
      const box = cell.firstElementChild ?? cell.appendChild(el("div"));
      sync(box, q.error ? [{ state: "error", error: q.error }] : q.counts ?? [], (c) => c.state, () => el("span"), (n, c) => {
        attr(n, "class", c.error ? "error" : c.items ? "state" : "state dim");
        text(n, c.error ?? `${inside(c.state)} ${count(c.items)} `);
      });
    }),
    column("Oldest", "num age", (cell, q) => text(cell, q.oldestMs > 0 ? span(q.oldestMs) : "–")),
    plain("Nodes", "num", (q) => count(q.nodes)),
    column("State", "status", (cell, q) => status(cell, q.error ? "unknown" : q.paused ? "paused" : "runs")),
    column("Actions", "actions", (cell, q) => {
      const name = `queue ${inside(q.name)}`;
      buttons(cell, [
        !q.paused && can(q, "pauseQueue") && { label: "Pause", of: name, does: () => act(`pause ${name}`, { action: "pauseQueue", queue: q.name }) },
        q.paused && can(q, "resumeQueue") && { label: "Resume", of: name, does: () => act(`resume ${name}`, { action: "resumeQueue", queue: q.name }) },
      ]);
    }),
  ], "The program shows no queues.");
  let queue = "";
  let params = {};
  const states = el("select");
  choose(states, [["", "dead letters"], ..."any blocked ready delayed running retry done cancelled".split(" ").map((s) => [s, s])]);
  const form = filters(field("state", "State", states), ...["Key", "Lane", "Error"].map((n) => field(n.toLowerCase(), n, input("any"))));
  const dead = table("Items", "dead", (d) => d.id, [
    rowHead("Item", "id", (cell, d) => text(cell, d.id)),
    column("State", "status", (cell, d) => status(cell, d.state)),
    plain("Key", "key", (d) => d.key),
    plain("Lane", "lane", (d) => d.lane),
    plain("Attempts", "num", (d) => count(d.attempts)),
    column("Ended", "time", (cell, d) => moment(cell, d.ended)),
    plain("Error", "error", (d) => d.note || d.error),
    column("Actions", "actions", (cell, d) => {
      if (!["dead", "halted"].includes(d.state)) return buttons(cell, []);
      const q = (all.queues ?? []).find((q) => q.name === queue);
      const name = `item ${d.id} of ${inside(queue)}`;
      buttons(cell, [
        can(q, "again") && { label: "Again", of: name, does: () => act(`run ${name} again`, { action: "again", queue, item: d.id }) },
        can(q, "discard") && { label: "Discard", of: name, danger: true, does: () => confirmed(`Discard ${name}`, `It was tried ${many(d.attempts, "time")}. It is given up for good.`, { action: "discard", queue, item: d.id }) },
      ]);
    }),
  ], "No such items.");
  const first = el("a", {}, "First page");
  const next = el("a", {}, "Next 50");
  const pages = el("nav", { class: "pages", "aria-label": "Pages of items" }, first, next);
  const failed = el("p", { class: "error", role: "alert", hidden: true });
  const box = el("section", { "aria-label": "Items" }, form, failed, dead.node, pages);
  let loaded = 0;

  async function load() {
    loaded = performance.now();
    const wanted = params;
    try {
      const frame = await ask("api/items?" + query({ ...params, queue, limit: 50 }));
      if (wanted !== params || frozen) return;
      failed.hidden = true;
      dead.node.hidden = pages.hidden = false;
      dead.set(frame.items);
      first.hidden = !params.after;
      next.hidden = !frame.next;
      attr(first, "href", address("queues", { ...params, after: "" }));
      attr(next, "href", frame.next ? address("queues", { ...params, after: frame.next }) : null);
    } catch (error) {
      failed.hidden = !(error instanceof Refused);
      if (error.status === 404) dead.node.hidden = pages.hidden = true;
      text(failed, error.message);
    }
  }
  return {
    title: "Queues",
    nodes: [list.node, box],
    feed(p) {
      params = p;
      queue = p.queue || all.queues?.[0]?.name || "";
      refill(form, p);
      text(dead.title, `Items of ${queue}`);
      box.hidden = !queue;
      dead.node.hidden = pages.hidden = true; // until it is there
      if (queue) load();
      return ["overview", {}];
    },
    acted: () => queue && load(),
    update(frame) {
      all = frame;
      list.set(frame.queues);
      // The frame has counts only. Items come every two seconds at most.
      if (queue && performance.now() - loaded > 2000) load();
    },
  };
}

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

// --- Which view

const views = { overview, operations, operation, signals, queues, schedules };
// These make a view another page, with focus on its heading. Other parameters only filter.
const identity = { operation: ["coordinator", "id"] };

function route() {
  const [view, q] = location.hash.slice(1).split("?", 2);
  return { view: Object.hasOwn(views, view) ? view : "overview", params: Object.fromEntries(new URLSearchParams(q ?? "")) };
}

let shown = null; // the view on the page

function show() {
  const { view, params } = route();
  const page = query(Object.fromEntries([["view", view], ...(identity[view] ?? []).map((name) => [name, params[name]])]));
  if (shown?.page !== page) {
    const first = !shown;
    shown = views[view]();
    shown.page = page;
    const heading = el("h1", { id: "heading", tabindex: -1 }, shown.title);
    $("main").replaceChildren(heading, el("p", { id: "trouble", class: "error", role: "alert", hidden: true }), ...shown.nodes);
    if (!first) {
      scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
  }
  header();
  feed.open(...shown.feed(params));
}

$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the view
  $("main").focus();
});

// The overview has the names and permissions that views need.
async function names() {
  try {
    all = await ask("api/overview");
  } catch (error) {
    feed.state("lost", error instanceof Refused ? "refused: " + error.message : "lost, trying again");
    return false;
  }
  return true;
}

async function go() {
  const address = location.hash;
  if (shown && !["overview", "queues", "schedules"].includes(route().view)) await names();
  if (address === location.hash) show();
}
addEventListener("hashchange", go);

(async function start() {
  $("feed").hidden = false;
  for (let wait = 500; !(await names()); wait = Math.min(8000, wait * 2)) await new Promise((ready) => setTimeout(ready, wait));
  show();
})();
