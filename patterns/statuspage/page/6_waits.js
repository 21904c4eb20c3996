// --- Who waits for whom

const maxDrawn = 60; // nodes of the drawing
const box = { width: 170, height: 40, right: 60, below: 14, edge: 8, left: 30 };

const nodeWords = {
  operation: (n) => `operation ${n.operation}`,
  limit: () => "slots",
  suspended: () => "slots of suspended operations",
  paused: () => "pause",
  nested: (n) => joined(["room", n.name && `in ${inside(n.name)}`], " "),
  rate: (n) => `tokens of ${inside(n.name)}`,
  body: (n) => inside(n.name ?? ""),
  refused: (n) => `signal ${inside(n.name)}`,
};
nodeWords.deferred = nodeWords.trial = nodeWords.refused;
const nodeName = (n) => (nodeWords[n.kind] ?? ((n) => `${n.kind} ${inside(n.name ?? "")}`))(n);
const nodeOf = (n) => inside(coordinatorOf(n.coordinator)?.name ?? n.coordinator ?? "");

// drawable returns what to draw: operations that wait for the same, and for which the same nodes wait, are one node.
// Nodes of cycles come first.
function drawable(frame) {
  const to = frame.nodes.map(() => new Map()); // whether the other one only goes first
  const awaited = frame.nodes.map(() => new Set());
  for (const e of frame.edges) {
    to[e.from].set(e.to, Boolean(e.order && (to[e.from].get(e.to) ?? true)));
    awaited[e.to].add(e.from);
  }
  const cycle = new Set(frame.cycles.flat());
  const groups = new Map();
  frame.nodes.forEach((n, i) => {
    if (!to[i].size && !awaited[i].size) return; // it does not wait, and nobody waits for it
    const key = n.kind !== "operation" || cycle.has(i) ? i : [n.coordinator, n.status, n.stuck, ...to[i].keys(), "by", ...awaited[i]].join();
    if (!groups.has(key)) groups.set(key, { ...n, key, i, to: to[i], n: 0, cycle: cycle.has(i) });
    groups.get(key).n++;
  });
  const rank = (g) => (g.cycle ? 0 : g.stuck ? 1 : 2);
  const all = [...groups.values()].sort((a, b) => rank(a) - rank(b) || a.i - b.i);
  const nodes = all.slice(0, maxDrawn);
  const known = new Map(nodes.map((n) => [n.i, n]));
  const edges = [];
  for (const a of nodes) for (const [i, order] of a.to) if (known.has(i)) edges.push({ a, b: known.get(i), order, cycle: false });
  for (const path of frame.cycles) path.forEach((i, k) => edges.forEach((e) => (e.cycle ||= e.a.i === i && e.b.i === path[(k + 1) % path.length])));
  return { nodes, edges, cut: all.length - nodes.length };
}

// arrange gives each node a place, to the right of all nodes that wait for it. An edge that closes
// a circle does not count.
function arrange(nodes, edges) {
  const after = new Map(nodes.map((n) => [n, []]));
  for (const e of edges) after.get(e.a).push(e);
  const order = [];
  const state = new Map();
  const visit = (n) => {
    state.set(n, 1);
    for (const e of after.get(n)) {
      e.back = state.get(e.b) === 1;
      if (!state.has(e.b)) visit(e.b);
    }
    state.set(n, 2);
    order.unshift(n);
  };
  for (const n of nodes) if (!state.has(n)) visit(n);
  for (const n of order) {
    n.column ??= 0;
    for (const e of after.get(n)) if (!e.back) e.b.column = Math.max(e.b.column ?? 0, n.column + 1);
  }
  const columns = [];
  for (const n of order) (columns[n.column] ??= []).push(n);
  for (const column of columns) {
    const means = new Map(column.map((n) => {
      const from = edges.filter((e) => e.b === n && e.a.y !== undefined);
      return [n, from.reduce((sum, e) => sum + e.a.y, 0) / (from.length || 1)];
    }));
    column.sort((a, b) => means.get(a) - means.get(b));
    column.forEach((n, k) => {
      n.x = box.left + n.column * (box.width + box.right);
      n.y = box.edge + k * (box.height + box.below);
    });
  }
  return { width: box.left + columns.length * (box.width + box.right), height: 2 * box.edge + 40 + Math.max(...columns.map((c) => c.length)) * (box.height + box.below) };
}

// curve is the path of an edge. Past other columns, it goes between the rows.
function curve({ a, b, back }) {
  const [x, y, to, at] = [a.x + box.width, a.y + box.height / 2, b.x, b.y + box.height / 2];
  const bow = back ? 45 : 30;
  const low = back ? Math.max(y, at) + 2 * box.height : 0;
  const arrow = "m-7,-4 l7,4 l-7,4";
  if (back || to - x <= box.right) return `M${x},${y} C${x + bow},${low || y} ${to - bow},${low || at} ${to},${at} ${arrow}`;
  const gap = y + (Math.sign(at - y) || 1) * (box.height + box.below) / 2;
  return `M${x},${y} C${x + bow},${y} ${x + bow},${gap} ${x + box.right},${gap} H${to - box.right} C${to - bow},${gap} ${to - bow},${at} ${to},${at} ${arrow}`;
}

const short = (words, most) => (words.length > most ? words.slice(0, most - 1) + "…" : words);

function waitGraph() {
  const circles = el("div", { class: "cycles", role: "alert" });
  const edges = svg("g");
  const nodes = svg("g");
  const picture = svg("svg", { "aria-hidden": "true" }, edges, nodes);
  const drawing = el("div", { class: "graph", tabindex: 0, role: "group", "aria-label": "Drawing of the table below" }, picture);
  const note = el("p", { class: "note" });
  let list = [];
  const rows = table("Who waits for whom", "edges", (e) => `${e.from.key} ${e.to.key}`, [
    rowHead("Waits", "name", (cell, e) => link(cell, toOperation(e.from.coordinator, e.from.operation), `${nodeName(e.from)} of ${nodeOf(e.from)}`)),
    column("For", "name", (cell, e) => link(cell, toOperation(e.to.coordinator, e.to.operation), `${nodeName(e.to)} of ${nodeOf(e.to)}`)),
    column("Since", "num age", (cell, e) => (e.since ? age(cell, e.since) : text(cell, ""))),
    plain("Why", "why-text", (e) => joined([e.circle && "in a cycle", e.text || "until it ends"], ": ")),
  ], "Nothing waits.");
  return {
    title: "Who waits for whom",
    nodes: [circles, drawing, note, rows.node],
    feed: () => ["graph", {}],
    update(frame) {
      list = frame.nodes.map((n) => ({ ...n, key: [n.kind, n.coordinator, n.operation, n.name].join("\n") }));
      sync(circles, frame.cycles.slice(0, 20), (c) => c.map((i) => list[i].key).join("\n"), () => el("p", { class: "error" }),
        (node, c) => {
          const [first, ...others] = [...c, c[0]].map((i) => `${nodeName(list[i])} of ${nodeOf(list[i])}`);
          text(node, `A cycle: ${first} waits for ${others.join(", which waits for ")}. It does not end by itself.`);
        });
      const on = new Set(frame.cycles.flatMap((c) => c.map((i, k) => `${i} ${c[(k + 1) % c.length]}`)));
      const shownEdges = frame.edges.map((e) => ({ ...e, from: list[e.from], to: list[e.to], circle: on.has(`${e.from} ${e.to}`) }))
        .sort((a, b) => b.circle - a.circle || (a.order ?? 0) - (b.order ?? 0)).slice(0, 200);
      rows.set(shownEdges);
      const d = drawable(frame);
      drawing.hidden = !d.nodes.length;
      text(note, joined([
        frame.missing && `${count(frame.missing)} of ${many(frame.seen + frame.missing, "operation")} were not looked at.`,
        d.cut && `The drawing has ${maxDrawn} of ${count(maxDrawn + d.cut)} boxes.`,
        frame.edges.length > 200 && `The table has 200 of ${count(frame.edges.length)} rows.`,
        frame.cycles.length > 20 && `20 of ${count(frame.cycles.length)} cycles are written out.`], " "));
      if (!d.nodes.length) return;
      const size = arrange(d.nodes, d.edges);
      for (const name of ["width", "height"]) attr(picture, name, size[name]);
      sync(edges, d.edges, (e) => `${e.a.key} ${e.b.key}`, () => svg("path"), (path, e) => {
        attr(path, "d", curve(e));
        attr(path, "class", e.cycle ? "cycle" : e.order ? "order" : e.a.stuck && e.b.stuck ? "stuck" : null);
      });
      sync(nodes, d.nodes, (n) => n.key, () => svg("g", {}, svg("rect", { width: box.width, height: box.height, rx: 5 }), svg("text", { x: 9, y: 17 }), svg("text", { x: 9, y: 32, class: "of" }), svg("title")), (g, n) => {
        const [rect, name, of, title] = g.children;
        const words = n.n > 1 ? many(n.n, "operation") : nodeName(n);
        attr(g, "transform", `translate(${n.x},${n.y})`);
        attr(g, "class", joined([n.kind === "operation" && "operation", n.cycle ? "cycle" : n.stuck && "stuck"], " "));
        attr(rect, "rx", n.kind === "operation" ? 5 : 20);
        text(name, short(words, 24));
        text(of, short(joined([nodeOf(n), n.status, n.cycle ? "in a cycle" : n.stuck && "stuck"], " · "), 29));
        text(title, `${words} of ${nodeOf(n)}`);
      });
    },
  };
}
