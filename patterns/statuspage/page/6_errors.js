// --- Errors

function failures() {
  const groups = table("Errors", "errors", (g) => [g.coordinator, g.text].join("\n"), [
    rowHead("Error", "text", (cell, g) => {
      if (!cell.firstChild) cell.append(el("span", { class: "error" }), el("details", {}, el("summary", {}, "Stack"), el("pre", { tabindex: 0 })));
      const [said, stack] = cell.children;
      text(said, g.text);
      stack.hidden = !g.stack;
      attr(stack.lastChild, "aria-label", `Stack of ${g.text}`);
      text(stack.lastChild, g.stack);
    }),
    column("Coordinator", "lane", (cell, g) => link(cell, address("operations", { coordinator: g.coordinator, status: "failed" }), coordinatorOf(g.coordinator)?.name ?? g.coordinator)),
    plain("Count", "num", (g) => count(g.count)),
    column("First", "time", (cell, g) => moment(cell, g.first)),
    column("Last", "time", (cell, g) => moment(cell, g.last)),
    column("Last one", "example", (cell, g) => link(cell, toOperation(g.coordinator, g.example.id), joined([`operation ${g.example.id}`, g.example.key && inside(g.example.key)], ", "))),
  ], "Of the operations that coordinators still show, none has failed.");
  const note = el("p", { class: "note" }, "These are the errors of failed operations that coordinators still show. The sign # stands for a number or an id.");
  const more = el("p", { class: "note", hidden: true });
  return {
    title: "Errors",
    nodes: [note, groups.node, more],
    feed: () => ["errors", {}],
    update(frame) {
      groups.set(frame.groups);
      more.hidden = !frame.others && !frame.more;
      text(more, joined([frame.others && `${many(frame.others, "other failed operation")} in smaller groups.`, frame.more && "Not all operations were looked at."], " "));
    },
  };
}
