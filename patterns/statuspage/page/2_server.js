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

// act does something on the server, and says how it went. It returns the answer, unless it failed.
async function act(words, action) {
  let answer;
  try {
    answer = await ask("api/act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(action) });
    say(answer.done ? `Done: ${words}` : `Nothing to do: ${words}`);
  } catch (error) {
    say(`Not done: ${words}: ${inside(error.message)}`, true);
  }
  shown?.acted?.();
  feed.soon();
  return answer;
}

// confirmed asks before it acts: action is a function, or what act does.
function confirmed(words, why, action) {
  text($("ask-title"), words + "?");
  text($("ask-text"), why);
  text($("ask-yes"), words);
  $("ask").does = () => (action.call ? action() : act(words, action));
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
