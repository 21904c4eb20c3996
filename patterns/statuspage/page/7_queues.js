// --- Queues

const queueOf = (name) => (all.queues ?? []).find((q) => q.name === name);
const nextOf = (item) => (["ready", "retry", "blocked"].includes(item.state) && isSet(item.runAt) ? item.runAt : null);

function itemButtons(cell, queue, d) {
  const q = ["dead", "halted"].includes(d.state) && queueOf(queue);
  const name = `item ${d.id} of ${inside(queue)}`;
  buttons(cell, [
    can(q, "again") && { label: "Again", of: name, does: () => act(`run ${name} again`, { action: "again", queue, item: d.id }) },
    can(q, "discard") && { label: "Discard", of: name, danger: true, does: () => confirmed(`Discard ${name}`, `It was tried ${many(d.attempts, "time")}. It is given up for good.`, { action: "discard", queue, item: d.id }) },
  ]);
}

// changes of many items, with the states that each can change. Delayed items are ready or retry.
const changes = {
  againAll: ["Again", "run", "again", "halted dead cancelled"],
  discardAll: ["Discard", "discard", "", "halted dead"],
  cancelAll: ["Cancel", "cancel", "", "blocked ready retry delayed running"],
};

// changeButtons offers to change all items that match the filter: it asks the store how many these are, and then the person.
function changeButtons(node, queue, params) {
  const q = queueOf(queue);
  const wanted = params.state === "any" ? null : (params.state || "halted|dead").split("|");
  const filter = { key: params.key, lane: params.lane, class: params.class, error: params.error };
  buttons(node, Object.entries(changes).map(([action, [label, verb, after, from]]) => {
    const state = from.split(" ").filter((s) => (wanted ? wanted.includes(s) : s !== "delayed")).join("|");
    const also = joined(Object.entries(filter).map(([name, value]) => value && `${name} ${inside(value)}`), ", ");
    return can(q, action) && state && {
      label: `${label} all that match`, of: `of ${inside(queue)}`, danger: action !== "againAll",
      does: async () => {
        try {
          const { count: n } = await ask("api/count?" + query({ queue, state, ...filter }));
          const words = joined([verb, many(n, "item"), `of ${inside(queue)}`, after], " ");
          if (!n) return say("No item matches.");
          confirmed(words[0].toUpperCase() + words.slice(1), `They are ${state.replaceAll("|", " or ")}${also && `, with ${also}`}. It changes no more than these, but some that match later may be among them.`, () => changeAll(words, n, { action, queue, state, ...filter }));
        } catch (error) {
          say(inside(error.message), true);
        }
      },
    };
  }));
}

// changeAll acts until as many items are changed as were counted, and changes no more: one action changes 500.
async function changeAll(words, n, action) {
  let changed = 0;
  for (let more = 1; more && changed < n; changed += more) {
    const answer = await act(words, { ...action, limit: Math.min(500, n - changed) });
    if (!answer) return changed && say(`${$("said").textContent}. ${count(changed)} were changed before.`, true);
    more = answer.changed;
    if (more && changed + more < n) say(`${count(changed + more)} of ${count(n)}: ${words}`);
  }
  say(`Done, ${count(changed)} changed: ${words}`);
}

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
    plain("Note", "about", (q) => q.note),
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
  choose(states, [["", "dead letters"], ["blocked|ready|retry", "waiting"], ..."any blocked ready delayed running retry done cancelled".split(" ").map((s) => [s, s])]);
  const form = filters(field("state", "State", states), ...["Key", "Lane", "Class", "Error"].map((n) => field(n.toLowerCase(), n, input("any"))));
  const bulk = el("span", { class: "buttons" });
  const dead = table("Items", "dead", (d) => d.id, [
    rowHead("Item", "id", (cell, d) => link(cell, queueOf(queue)?.details && address("item", { queue, id: d.id }), d.text || d.id)),
    column("State", "status", (cell, d) => status(cell, d.state)),
    plain("Key", "key", (d) => d.key),
    plain("Lane", "lane", (d) => [d.lane, d.class].filter(Boolean).map(inside).join(" · ")),
    plain("Attempts", "num", (d) => count(d.attempts)),
    column("Next or ended", "time", (cell, d) => moment(cell, nextOf(d) ?? d.ended)),
    plain("Error", "error", (d) => d.note || d.error),
    column("Actions", "actions", (cell, d) => itemButtons(cell, queue, d)),
  ], "No such items.");
  const first = el("a", {}, "First page");
  const next = el("a", {}, "Next 50");
  const pages = el("nav", { class: "pages", "aria-label": "Pages of items" }, first, next);
  const failed = el("p", { class: "error", role: "alert", hidden: true });
  const box = el("section", { "aria-label": "Items" }, form.box, bulk, failed, dead.node, pages);
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
      changeButtons(bulk, queue, params);
      dead.node.hidden = pages.hidden = true; // until it is there
      if (queue) load();
      return ["overview", {}];
    },
    acted: () => queue && load(),
    update(frame) {
      all = frame;
      list.set(frame.queues);
      changeButtons(bulk, queue, params);
      // The frame has counts only. Items come every two seconds at most.
      if (queue && performance.now() - loaded > 2000) load();
    },
  };
}

// --- One item

function item() {
  let queue = "";
  const head = el("p", { class: "buttons" });
  const list = el("dl", { class: "facts" });
  const why = el("section", { class: "why", "aria-labelledby": "why" }, el("h2", { id: "why" }, "Why it waits, or how it ended"), el("p"));
  const attempts = table("Last attempts", "attempts", (a) => a.i, [
    rowHead("Started", "time", (cell, a) => moment(cell, a.started)),
    column("Became", "status", (cell, a) => status(cell, a.state)),
    column("Took", "num age", (cell, a) => age(cell, a.started, a.ended)),
    plain("Node", "lane", (a) => a.node),
    plain("Error", "error", (a) => a.error),
  ], "It was not tried yet, or the store keeps no attempts.");
  const flow = table("", "flow", (s) => s.i, [
    rowHead("Step", "name", (cell, s) => text(cell, s.name)),
    column("State", "status", (cell, s) => status(cell, s.state)),
    column("Since", "time", (cell, s) => moment(cell, isSet(s.ended) ? s.ended : s.started)),
    column("Took", "num age", (cell, s) => age(cell, s.ended || ["begun", "waits"].includes(s.state) ? s.started : "", s.ended)),
    plain("Attempts", "num", (s) => s.attempts),
    plain("Signal", "key", (s) => s.signal || (s.state === "waits" ? "none, it sleeps" : "")),
    column("Until", "time", (cell, s) => moment(cell, s.until, "")),
  ]);
  const body = el("div", { hidden: true }, head, list, why, flow.node, attempts.node);
  return {
    title: "Item",
    nodes: [body],
    feed(p) {
      queue = p.queue;
      text($("heading"), `Item ${p.id ?? ""} of ${queue}`);
      return ["item", { queue, id: p.id }];
    },
    update({ item: d, missing }) {
      this.title = d.text || `Item ${d.id}`;
      body.hidden = false;
      itemButtons(head, queue, d);
      facts(list, [
        { name: "state", set: (cell) => status(cell, d.state) },
        { name: "queue", set: (cell) => link(cell, address("queues", { queue }), queue) },
        d.key && fact("key", d.key),
        d.lane && fact("lane", d.lane),
        d.class && fact("class", d.class),
        fact("attempts", count(d.attempts)),
        { name: "enqueued", set: (cell) => moment(cell, d.enqueued) },
        nextOf(d) && { name: "next attempt", set: (cell) => moment(cell, d.runAt) },
        isSet(d.started) && { name: "last started", set: (cell) => moment(cell, d.started) },
        isSet(d.ended) && { name: "ended", set: (cell) => moment(cell, d.ended) },
        d.node && fact("node", d.node),
        d.note && fact("note", d.note),
        d.error && fact("error", d.error, "error"),
        ...Object.entries(d.metadata ?? {}).map((m) => fact(...m)),
      ].filter(Boolean));
      text(why.lastChild, d.why);
      text(flow.title, `Steps of the flow${missing ? `, without the first ${count(missing)}` : ""}`);
      flow.set((d.steps ?? []).map((s, i) => ({ ...s, i })));
      attempts.set((d.history ?? []).map((a, i) => ({ ...a, i })).reverse());
    },
  };
}
