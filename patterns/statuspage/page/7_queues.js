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
