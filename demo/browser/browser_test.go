package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

const (
	prefix = "/debug/ephemeral"
	bad    = "/bad"
)

// views lists all views; id is the operation to show.
func views(p *program, id any) map[string]string {
	return map[string]string{
		"overview":   "#overview",
		"operations": "#operations",
		"operation":  fmt.Sprintf("#operation?id=%v&coordinator=%s", id, escaped(p.name("orders"))),
		"errors":     "#errors",
		"signals":    "#signals",
		"waits":      "#waits",
		"time":       "#time",
		"queues":     "#queues",
		"item":       fmt.Sprintf("#item?queue=%s&id=%d", escaped(p.name("invoices")), p.item),
		"schedules":  "#schedules",
		"schedule":   fmt.Sprintf("#schedule?schedules=%s&schedule=%s", escaped(p.plans.Name()), escaped(p.name("nightly report"))),
	}
}

func escaped(name string) string {
	return strings.NewReplacer("<", "%3C", ">", "%3E", "=", "%3D", " ", "%20").Replace(name)
}

// TestPage shows the page in a browser, as people use it.
func TestPage(t *testing.T) {
	browser := chromium(t)
	go axe() // meanwhile
	shop := newShop(t)
	evil := newProgram(t, func(name string) string { return name + hostile })
	runs, waits := shop.fill()
	evilRuns, _ := evil.fill()
	server := newSite(t, map[string]*program{prefix: shop, bad: evil})
	origin := "http://" + server.address + prefix + "/"

	var b *tab
	address, mayFail := "", false
	run := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			b, address, mayFail = newTab(t, browser), "http://"+server.address+"/", false
			do(t)
			if !t.Failed() {
				b.check(address, mayFail)
			}
		})
	}

	run("Load", func(t *testing.T) {
		b.open(origin)
		b.until(`document.querySelector("#state").textContent === "live"`)
		b.until(`document.querySelector("#title").textContent === "shop" && document.title === "1 failed – Overview – shop"`)
		b.until(`[...document.querySelectorAll(".card h2")].map((h) => h.textContent).join() === "orders,uploads,mails"`)
		b.until(`document.querySelector(".card").textContent.includes("10/s")`)
		b.until(`/closed\s+defers lane slow on db.down/.test(document.querySelector(".gates").innerText)`)
		b.open("http://" + server.address + prefix) // without the slash
		b.until(`document.querySelector(".card h2") && location.pathname === "%s/"`, prefix)
	})

	run("LiveUpdateKeepsFocusSelectionAndScroll", func(t *testing.T) {
		b.do(chromedp.EmulateViewport(1000, 200))
		b.open(origin + "#operations?coordinator=orders&order=newest")
		b.until(`document.querySelectorAll("tbody tr").length > 5`)
		value[bool](b, `(() => {
			scrollTo(0, 340);
			const rows = document.querySelectorAll(".operations tbody tr");
			focused = rows[2].querySelector("a");
			focused.focus({ preventScroll: true });
			selected = rows[3].querySelector(".status").firstChild;
			getSelection().selectAllChildren(rows[3].querySelector(".status"));
			place = focused.getBoundingClientRect().top;
			return true;
		})()`)
		id := shop.enqueue("normal", newOrder("gus"))
		b.until(`document.querySelector(".operations tbody tr th").textContent === "%d"`, id)
		b.until(`document.activeElement === focused && getSelection().anchorNode.contains(selected) && String(getSelection()).length > 3`)
		b.until(`Math.abs(focused.getBoundingClientRect().top - place) < 2`)
		shop.orders.Cancel(id, context.Canceled)
		b.until(`document.querySelector(".operations tbody tr .status").textContent === "cancelled"`)
		b.until(`document.activeElement === focused`)
	})

	run("Freeze", func(t *testing.T) {
		b.open(origin)
		b.until(`document.querySelector(".numbers")`)
		b.click("#freeze")
		b.until(`document.querySelector("#freeze").ariaPressed === "true" && document.querySelector("#state").textContent === "frozen"`)
		value[bool](b, `(frames = 0, before = document.querySelector(".outcomes").innerText, Boolean(feed.source.addEventListener("message", () => frames++)) || true)`)
		done := newOrder("hal")
		done.end <- nil
		shop.end(shop.enqueue("hot", done))
		b.until(`frames > 0 && document.querySelector(".outcomes").innerText === before`)
		b.click("#freeze")
		b.until(`document.querySelector(".outcomes").innerText !== before && document.querySelector("#state").textContent === "live"`)
		b.click("#freeze")
		b.click(`#nav a[href="#operations"]`) // another view shows its present state
		b.until(`document.querySelectorAll(".operations tbody tr").length > 5`)
	})

	run("Filter", func(t *testing.T) {
		b.open(origin + "#operations?coordinator=orders")
		b.until(`document.querySelectorAll("tbody tr").length > 5`)
		b.click(`input[value="failed"]`)
		b.until(`location.hash.includes("status=failed") && document.querySelectorAll(".operations tbody tr").length === 1`)
		b.until(`document.querySelector(".operations tbody .error").textContent === "payment: card declined"`)
		b.click(`input[value="failed"]`)
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="key"]`), "ada"))
		b.until(`location.hash.includes("key=ada") && [...document.querySelectorAll("tbody .key")].map((k) => k.textContent).join() === "ada,ada"`)
		b.until(`document.activeElement.name === "key" && document.activeElement.value === "ada"`)
		b.open(origin + "#operations?coordinator=orders&lane=slow")
		b.until(`document.querySelectorAll("tbody tr").length === 2 && document.querySelector("select[name=lane]").value === "slow"`)
		b.open(origin + "#signals?pattern=cache.*")
		b.until(`[...document.querySelectorAll("table.signals tbody th")].map((s) => s.textContent).join() === "cache.warmed"`)
	})

	run("Find", func(t *testing.T) {
		b.open(origin + "#operations?coordinator=uploads")
		b.until(`document.querySelector("select[name=coordinator]").checkVisibility()`)
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="find"]`), "CARD"))
		b.until(`document.querySelector(".operations caption").textContent === "Operations with CARD: 1" && document.querySelector(".operations tbody th").textContent.endsWith(" of orders")`)
		b.until(`document.querySelector(".operations tbody .error").textContent === "payment: card declined" && !document.querySelector("select[name=coordinator]").checkVisibility()`)
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="find"]`), kb.Backspace+kb.Backspace+kb.Backspace+kb.Backspace+fmt.Sprint(runs)))
		b.until(`document.querySelector(".operations tbody a").textContent === "%d of orders"`, runs)
		b.do(chromedp.EmulateViewport(390, 800))
		b.until(`document.querySelector(".fold > summary").textContent === "Filters: 1 set" && !document.querySelector(".fold").open`)
		b.click(".fold > summary")
		b.until(`document.querySelector("input[name=find]").checkVisibility()`)
	})

	run("ErrorsInGroups", func(t *testing.T) {
		fails := core.Must(core.NewCoordinator(func(_ context.Context, n int) error {
			if n == 0 {
				panic("no invoice 17")
			}
			return fmt.Errorf("order %d: %s", n, hostile)
		}, core.Options{Name: "bills", MaxConcurrency: 1}))
		defer fails.Close()
		for n := range 3 {
			fails.Do(t.Context(), n)
		}
		page := core.Must(statuspage.New(statuspage.Options{
			Coordinators: []core.Inspector{fails}, Show: func(item any) string { return fmt.Sprintf("bill %v%s", item, hostile) },
		}))
		site := httptest.NewServer(page)
		defer site.Close()
		defer page.Close() // first
		address = site.URL
		b.open(address + "/#errors")
		b.until(`[...document.querySelectorAll(".errors tbody .num")].map((n) => n.textContent).join() === "2,1"`)
		b.until(`document.querySelector(".errors tbody .error").textContent === %q`, "order #: "+strings.ReplaceAll(hostile, "1", "#"))
		b.until(`document.querySelectorAll(".errors tbody tr")[1].querySelector(".error").textContent === "core: operation panicked: no invoice #"`)
		b.until(`!document.querySelector("pre").checkVisibility()`)
		b.click("tr:nth-child(2) summary")
		b.until(`document.querySelectorAll("pre")[1].checkVisibility() && document.querySelectorAll("pre")[1].textContent.includes("browser.TestPage")`)
		source, err := axe()
		if err == nil {
			b.accessible(source, "errors, with a stack")
		}
		b.click("tr:nth-child(1) .example a")
		b.until(`document.querySelector("h1").textContent.startsWith("Operation ") && document.querySelector(".facts").innerText.includes(%q)`, "bill 2"+hostile)
	})

	run("SomeItemsFail", func(t *testing.T) {
		mails := newProgram(t, func(name string) string { return name })
		mails.queue = &failingQueue{fakeQueue: fakeQueue{name: "mails"}}
		address, mayFail = newSite(t, map[string]*program{prefix: mails}).url(prefix, ""), true
		b.open(address + "#queues")
		b.click(`button[aria-label="Again all that match of mails"]`)
		b.until(`document.querySelector("dialog").open`)
		b.click("#ask-yes")
		b.until(`document.querySelector("#said.bad").textContent === "Not done: run 700 items of mails again: disk full. 500 were changed before."`)
	})

	run("ManyItems", func(t *testing.T) {
		mails := newShop(t)
		address = newSite(t, map[string]*program{prefix: mails}).url(prefix, "")
		b.open(address + "#queues")
		b.until(`document.querySelectorAll(".dead tbody tr").length === 2`)
		for n := range value[int](b, `document.querySelector("select[name=state]").options.length`) { // each of them is a state of the store
			value[bool](b, `(s = document.querySelector("select[name=state]"), s.selectedIndex = %d, s.dispatchEvent(new Event("input", { bubbles: true })))`, n)
			b.until(`new URLSearchParams(location.hash.split("?")[1]).get("state") === (%d ? document.querySelector("select[name=state]").value : null)`, n)
			b.until(`!document.querySelector(".dead").parentNode.hidden`)
		}
		b.open(address + "#overview")
		b.open(address + "#queues")
		b.until(`document.querySelectorAll(".dead tbody tr").length === 2`)
		b.click(`button[aria-label="Again all that match of invoices"]`)
		b.until(`document.querySelector("#ask-title").textContent === "Run 2 items of invoices again?" && document.querySelector("dialog").open`)
		b.click("#ask-yes")
		b.until(`document.querySelector("#said").textContent === "Done, 2 changed: run 2 items of invoices again"`)
		b.until(`document.querySelectorAll(".dead tbody tr").length === 2`) // they are dead again
		b.do(chromedp.SendKeys(chromedp.CSS(`input[name="key"]`), "ada"))
		b.until(`document.querySelectorAll(".dead tbody tr").length === 1`)
		b.click(`button[aria-label="Discard all that match of invoices"]`)
		b.until(`document.querySelector("#ask-title").textContent === "Discard 1 item of invoices?" && document.querySelector("#ask-text").textContent.startsWith("They are halted or dead, with key ada.")`)
		mails.bill("ada") // no more are discarded than the person is asked about
		b.until(`document.querySelectorAll(".dead tbody tr").length === 2`)
		b.click("#ask-yes")
		b.until(`document.querySelector("#said").textContent === "Done, 1 changed: discard 1 item of invoices"`)
		b.open(address + "#queues?state=any")
		b.until(`[...document.querySelectorAll(".dead tbody .status")].map((s) => s.textContent).sort().join() === "cancelled,dead,dead"`)
		b.click(`.dead tbody tr:has([data-status="dead"]) a`)
		b.until(`document.querySelector("h1").textContent === "Item 2 of invoices"`)
		b.until(`document.querySelector(".attempts tbody .error").textContent.includes("smtp: 550 no mailbox of bob") && document.querySelector(".why").innerText.includes("dead")`)
		b.click(`button[aria-label="Discard item 2 of invoices"]`)
		b.click("#ask-yes")
		b.until(`document.querySelector(".facts [data-status]").textContent === "cancelled"`)
	})

	run("Firings", func(t *testing.T) {
		b.open(origin + "#schedules")
		b.until(`document.querySelector("td.about").textContent === "removes what nobody asked for in a month"`)
		b.click(".schedules tbody tr:nth-child(1) a")
		b.until(`document.querySelector("h1").textContent === "Schedule cleanup"`)
		b.click(`button[aria-label="Run now schedule cleanup"]`)
		b.until(`document.querySelector(".firings tbody .status").textContent === "handed over"`)
	})

	run("FollowAWait", func(t *testing.T) {
		b.open(origin + "#operations?coordinator=orders&status=pending")
		row := fmt.Sprintf(`.operations tbody a[href="#operation?coordinator=orders&id=%d"]`, runs)
		b.until(`document.querySelector('%s').textContent === 'the only slot of key "ada" is taken by operation %d'`, row, runs)
		b.click(row)
		b.until(`document.querySelector("h1").textContent === "Operation %d of orders"`, runs)
		b.until(`document.activeElement === document.querySelector("h1")`)
		b.until(`document.querySelector(".why").innerText.includes("the courier")`)
		b.until(`document.querySelector(".facts").innerText.includes("1/4")`)
		b.until(`document.querySelectorAll(".life .marks line").length === 2`) // started, progress
		b.until(`document.querySelector(".operations tbody .key").textContent === "cyd"`)
		b.do(chromedp.NavigateBack())
		b.until(`document.querySelectorAll(".operations tbody tr").length > 2`)
		b.open(origin + fmt.Sprintf("#operation?coordinator=orders&id=%d", waits))
		b.click(".why a")
		b.until(`document.querySelector("h1").textContent === "Operation %d of orders"`, runs)
	})

	run("Cancel", func(t *testing.T) {
		id := shop.enqueue("hot", newOrder("ivy"))
		b.open(origin + fmt.Sprintf("#operation?coordinator=orders&id=%d", id))
		b.click("#main .danger")
		b.until(`document.querySelector("dialog").open && document.activeElement.textContent === "Back"`)
		b.press(kb.Escape)
		b.until(`!document.querySelector("dialog").open && document.activeElement.textContent === "Cancel"`)
		b.until(`document.querySelector(".facts [data-status]").textContent !== "cancelled"`)
		b.press(kb.Enter)
		b.until(`document.querySelector("dialog").open`)
		b.press(kb.Tab)
		b.press(kb.Enter)
		b.until(`document.querySelector("#said").textContent === "Done: Cancel operation %d"`, id)
		b.until(`document.querySelector(".facts [data-status]").textContent === "cancelled"`)
		b.until(`document.querySelector(".facts .error").textContent.includes("cancelled by 127.0.0.1")`)
		b.until(`document.querySelector("#main button").textContent === "Evict"`)
		b.click("#main button")
		b.click("#ask-yes")
		b.until(`document.querySelector("#trouble").textContent.startsWith("there is no operation %d")`, id)
	})

	run("Gone", func(t *testing.T) {
		mayFail = true
		for hash, says := range map[string]string{
			"#operation?coordinator=orders&id=999999": "there is no operation 999999",
			"#operation?coordinator=orders":           "there is no operation 0",
			"#queues?queue=none":                      `there is no queue "none"`,
		} {
			b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(origin+hash))
			b.until(`document.querySelector("#main").innerText.includes(%q)`, says)
			if text := value[string](b, `document.body.innerText`); regexp.MustCompile(`undefined|Why it waits|no signals|No such items|no answer`).MatchString(text) {
				t.Errorf("%s shows more than that it is gone:\n%s", hash, text)
			}
		}
	})

	run("PanicInARow", func(t *testing.T) {
		page := core.Must(statuspage.New(statuspage.Options{Coordinators: []core.Inspector{panics{shop.orders.Control}, shop.mails}}))
		defer page.Close()
		site := httptest.NewServer(page)
		defer site.Close()
		address = site.URL
		b.open(address)
		b.until(`[...document.querySelectorAll(".card")].map((c) => /panicked: in Stats/.test(c.innerText) + " " + c.innerText.includes("pending")).join() === "true false,false true"`)
		page.Close()
	})

	run("WithoutJavaScript", func(t *testing.T) {
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatal(err)
		}
		b.do(chromedp.Navigate(origin))
		if text := value[string](b, `document.body.innerText`); !strings.Contains(text, "needs JavaScript") || strings.Contains(text, "connecting") {
			t.Errorf("without JavaScript, the page says: %s", text)
		}
	})

	run("ButtonsDoNotTouch", func(t *testing.T) {
		b.do(chromedp.EmulateViewport(390, 844))
		b.open("http://" + server.address + bad + "/#queues")
		b.until(`document.querySelectorAll(".dead .actions button").length === 4`)
		if gap := value[float64](b, `(([a, d]) => Math.max(d.left - a.right, d.top - a.bottom))([...document.querySelectorAll(".dead .actions button")].map((n) => n.getBoundingClientRect()))`); gap < 6 {
			t.Errorf("there are %v pixels between Again and Discard", gap)
		}
	})

	run("NamesTurnNothingAround", func(t *testing.T) {
		turned := newProgram(t, func(name string) string { return name + "\u202e" })
		turned.fill()
		address = newSite(t, map[string]*program{prefix: turned}).url(prefix, "")
		// forward is true if the word is on the page, from the left to the right.
		forward := `((word, within) => {
			for (const node of document.querySelectorAll(within)) for (const text of node.childNodes) {
				const at = text.nodeType === 3 ? text.data.lastIndexOf(word) : -1;
				if (at < 0) continue;
				const place = (i) => { const r = new Range(); r.setStart(text, at + i); r.setEnd(text, at + i + 1); return r.getBoundingClientRect(); };
				if (place(0).width > 0) return place(0).left < place(word.length - 1).left || place(0).top < place(word.length - 1).top;
			}
			throw new Error(word + " is not on the page");
		})(%q, %q)`
		b.open(address + "#operations?status=running,suspended")
		b.until(`document.querySelector(".reason").textContent.includes("courier")`)
		b.until(forward, "for ", ".reason .dim")
		b.click(".danger")
		b.until(`document.querySelector("dialog").open`)
		b.until(forward, "running", "#ask-text")
		b.click("#ask-no")
		b.open(address + "#signals")
		b.until(`/orders.* \d/.test(document.querySelector("tbody .by a").textContent)`)
		for _, selector := range []string{"a", "span", "time"} {
			if got := value[string](b, `getComputedStyle(document.querySelector("#main %s")).unicodeBidi`, selector); got != "isolate" {
				t.Errorf("%s has unicode-bidi %s", selector, got)
			}
		}
	})

	run("Steer", func(t *testing.T) {
		b.open(origin)
		b.click(`button[aria-label="Pause orders"]`)
		b.until(`document.querySelector(".badge.warn").textContent === "paused"`)
		b.click(`button[aria-label="Resume orders"]`)
		b.until(`document.querySelector(".badge.warn") === null`)
		b.do(chromedp.SendKeys(chromedp.CSS(`input[aria-label="Limit of uploads"]`), kb.End+kb.Backspace+"3"+kb.Tab+kb.Enter))
		b.until(`document.querySelector("section:nth-child(2) .numbers").innerText.includes("0 of 3")`)
		b.open(origin + "#queues")
		b.until(`document.querySelectorAll(".dead tbody tr").length === 2`)
		b.click(`button[aria-label="Pause queue invoices"]`)
		b.until(`document.querySelector("#said").textContent === "Done: pause queue invoices"`)
		b.click(`button[aria-label="Again item 1 of invoices"]`)
		b.until(`document.querySelectorAll(".dead tbody tr").length === 1`)
		b.click(`button[aria-label="Discard item 2 of invoices"]`)
		b.click("#ask-yes")
		b.until(`document.querySelector(".table:has(.dead) .empty").textContent === "No such items."`)
		b.until(`/ready 1\b.*dead 0.*cancelled 1/.test(document.querySelector("td.states").textContent) && document.querySelector(".queues td.status").textContent === "paused"`)
		b.open(origin + "#schedules")
		b.click(`button[aria-label="Run now schedule nightly report"]`)
		b.until(`document.querySelector("#said").textContent === "Done: run schedule nightly report now"`)
		coretest.Check(t, shop.sink.Has("report.due"), "the task has not run")
		b.click(`button[aria-label="Resume schedule nightly report"]`)
		b.until(`document.querySelectorAll("[data-status=runs]").length === 2`)
		shop.sink.Raise("shop.hint")
		b.open(origin + "#signals?pattern=shop.hint")
		b.click(`button[aria-label="Retract signals that match shop.hint"]`)
		b.click("#ask-yes")
		b.until(`document.querySelector("#said").textContent === "Done: Retract shop.hint"`)
		coretest.Check(t, !shop.sink.Has("shop.hint"), "the signal is still there")
	})

	run("Reconnect", func(t *testing.T) {
		mayFail = true // while the server is away
		b.open(origin)
		b.until(`document.querySelector(".numbers").innerText.includes(" of 6")`)
		server.stop()
		b.until(`document.querySelector("#state").textContent === "lost, trying again"`)
		if err := shop.orders.SetMaxConcurrency(7); err != nil {
			t.Fatal(err)
		}
		server.start()
		b.until(`document.querySelector("#state").textContent === "live"`)
		b.until(`document.querySelector(".numbers").innerText.includes(" of 7")`)
	})

	run("Hidden", func(t *testing.T) {
		b.open(origin)
		b.until(`feed.source`)
		value[bool](b, `(Object.defineProperty(document, "hidden", { value: true, configurable: true }), source = feed.source, document.dispatchEvent(new Event("visibilitychange")))`)
		b.until(`document.querySelector("#state").dataset.state === "hidden" && source.readyState === EventSource.CLOSED`)
		value[bool](b, `(delete document.hidden, document.dispatchEvent(new Event("visibilitychange")))`)
		b.until(`document.querySelector("#state").dataset.state === "live"`)
	})

	run("SevenTabs", func(t *testing.T) {
		mayFail = true // three clients get no stream, and an error
		tabs := []*tab{b}
		for len(tabs) < 7 {
			tabs = append(tabs, newTab(t, browser))
		}
		states := map[string]int{}
		for _, b := range tabs {
			b.open(origin)
			states[value[string](b, `document.querySelector("#state").dataset.state`)]++
		}
		coretest.Check(t, states["live"] == 4 && states["polling"] == 3, "tabs are %v, want 4 with a stream and 3 that poll", states)
		if err := shop.orders.SetMaxConcurrency(8); err != nil {
			t.Fatal(err)
		}
		for _, b := range tabs {
			b.until(`document.querySelector(".numbers").innerText.includes(" of 8")`)
			b.check(origin, true)
		}
	})

	narrow := func(t *testing.T, view string) {
		t.Helper()
		if width := value[int](b, `document.documentElement.scrollWidth`); width > 360 {
			t.Errorf("%s is %d wide", view, width)
		}
	}

	run("HostileNamesAreText", func(t *testing.T) {
		b.do(chromedp.EmulateViewport(360, 740))
		for view, hash := range views(evil, evilRuns) {
			b.open("http://" + server.address + bad + "/" + hash)
			b.until(`document.querySelector("#main").innerText.includes(%q)`, hostile)
			if n := value[int](b, `document.querySelectorAll("script, img").length`); n != 1 || value[bool](b, `"hacked" in window`) {
				t.Errorf("%s: there are %d scripts and images, want only that of the page", view, n)
			}
			narrow(t, view)
		}
		b.open("http://" + server.address + bad + "/" + views(evil, evilRuns)["operation"])
		for _, what := range []string{"ada", "hot", "order.started", "attempt", "the courier", "orders", "shop"} {
			b.until(`document.body.innerText.includes(%q)`, what+hostile)
		}
		b.open("http://" + server.address + bad + "/" + views(evil, evilRuns)["item"])
		b.until(`document.querySelector(".flow").innerText.includes(%q)`, "2invoices"+hostile)
		b.open("http://" + server.address + bad + "/#queues")
		b.until(`document.querySelector(".queues tbody .about").innerText.includes(%q)`, "paused by invoices"+hostile)
		b.open("http://" + server.address + bad + "/" + views(evil, evilRuns)["operation"])
		b.click("#main .danger")
		b.until(`document.querySelector("dialog").open && document.querySelector("#ask-text").textContent.includes(%q)`, hostile)
	})

	run("Keyboard", func(t *testing.T) {
		for view, hash := range views(shop, runs) {
			b.open(origin + hash)
			b.until(`document.querySelector("#main :is(a, button, input)")`)
			b.click("#freeze") // so that the page does not change meanwhile
			value[bool](b, `(document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute("tabindex"), true)`)
			// The Tab key reaches every control, in order, and then leaves the page.
			want := value[[]string](b, `(number = 0, usable = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility()), usable.map((e) => e.dataset.n = String(++number)))`)
			for i, n := range want {
				b.press(kb.Tab)
				if got := value[string](b, `document.activeElement.dataset.n ?? document.activeElement.tagName`); got != n {
					t.Fatalf("%s: tab %d of %d reaches %s, want %s: %s", view, i+1, len(want), got, n, value[string](b, `usable[%d].outerHTML`, i))
				}
				coretest.Check(t, i != 0 || value[string](b, `document.activeElement.id`) == "skip", "%s: the first is not the skip link", view)
				if !value[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
					t.Errorf("%s: no outline shows that %s has the focus", view, n)
				}
			}
			b.press(kb.Tab)
			coretest.Check(t, !value[bool](b, `document.activeElement.dataset.n === "%d"`, len(want)), "%s: the focus does not leave the page", view)
		}
		b.open(origin)
		b.press(kb.Tab)
		b.press(kb.Enter)
		b.until(`document.activeElement.id === "main"`)
		if hash := value[string](b, `location.hash`); hash != "" {
			t.Errorf("the skip link changes the view to %s", hash)
		}
	})

	run("Accessible", func(t *testing.T) {
		source, err := axe()
		if err != nil {
			need(t, "there is no axe-core: %v", err)
		}
		for _, scheme := range []string{"dark", "light"} {
			width := map[string]int64{"dark": 1400, "light": 360}[scheme] // colours do not depend on the width
			b.do(chromedp.EmulateViewport(width, 800))
			b.scheme(scheme)
			for view, hash := range views(shop, runs) {
				b.open(origin + hash)
				b.until(`document.querySelector("#main :is(table, .card)")`)
				if width == 360 {
					narrow(t, view)
				}
				b.accessible(source, fmt.Sprint(view, " ", scheme, " ", width))
			}
		}
		b.open("http://" + server.address + bad + "/" + views(evil, evilRuns)["item"])
		b.until(`document.querySelectorAll(".flow tbody tr").length === 3`)
		b.accessible(source, "narrow, with the steps of a flow")
		b.open(origin + "#operations")
		b.click("tbody .danger")
		b.until(`document.querySelector("dialog").open`)
		b.accessible(source, "narrow, with a dialog")
	})

	if dir := os.Getenv("EPHEMERAL_SCREENSHOTS"); dir != "" {
		run("Screenshots", func(t *testing.T) {
			busy := newShop(t)
			busy.fill()
			go busy.work(t.Context())
			address = newSite(t, map[string]*program{prefix: busy}).url(prefix, "")
			b.do(chromedp.EmulateViewport(1280, 800))
			b.open(address)
			b.until(`all.coordinators[1].throughput.length > 45`)
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "statuspage-"+scheme+".png"), png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// panics is a coordinator that panics when it is asked.
type panics struct{ core.Control }

func (panics) Stats() core.Stats { panic("in Stats") }

// scheme makes the tab light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}); err != nil {
		b.t.Fatal(err)
	}
	b.until(`matchMedia("(prefers-color-scheme: %s)").matches`, name)
}
