// --- Which view

const views = { overview, operations, operation, errors: failures, signals, queues, item, schedules, schedule, waits: waitGraph, time: times };
// These make a view another page, with focus on its heading. Other parameters only filter.
const identity = { operation: ["coordinator", "id"], item: ["queue", "id"], schedule: ["schedules", "schedule"] };

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
