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
