package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a condition may take. It is long, because machines may be loaded.
const patience = 60 * time.Second

// need skips the test, or fails it if a browser is required.
func need(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("EPHEMERAL_BROWSER_REQUIRED") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// end ends the browser, if there is one.
var end = func() {}

func TestMain(m *testing.M) {
	status := m.Run()
	end()
	os.Exit(status)
}

// start starts the browser of all tests, and returns the context for tabs; nil if there is none.
var start = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		dir, err := os.MkdirTemp("", "browser-")
		if err != nil {
			return nil, err
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(patience))
		ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ = chromedp.NewContext(ctx)
		end = func() {
			chromedp.Cancel(ctx)
			cancel()
			os.RemoveAll(dir) // it has ended, and writes no more
		}
		return ctx, chromedp.Do(ctx)
	}
	return nil, nil
})

// chromium returns the context for tabs.
func chromium(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("it starts a browser: set EPHEMERAL_LONG")
	}
	ctx, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if ctx == nil {
		need(t, "there is no chromium: apt-get install --no-install-recommends chromium")
	}
	return ctx
}

// A tab is one page of the browser, and remembers what went wrong in it.
type tab struct {
	t   testing.TB
	ctx context.Context

	used bool // shows an address

	mu       sync.Mutex
	errors   []string // errors of scripts and of the console
	failures []string // requests that failed, as the console says
	requests []string // all addresses
}

func newTab(t testing.TB, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.errors = append(b.errors, text)
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceNetwork {
			b.failures = append(b.failures, e.Entry.Text+" "+e.Entry.URL)
		} else {
			b.errors = append(b.errors, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// check fails if a script or the console of the tab had an error, or a request left the
// address. Requests may fail only if the test says so.
func (b *tab) check(address string, mayFail bool) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the console says: %s", e)
	}
	for _, f := range b.failures {
		if !mayFail {
			b.t.Errorf("a request failed: %s", f)
		}
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, address) && !strings.HasPrefix(r, "data:,") {
			b.t.Errorf("the page asked for %s, outside of %s", r, address)
		}
	}
	if len(b.requests) == 0 {
		b.t.Error("no request was seen")
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.look())
	}
}

// open loads an address, even if only the part after # is new, and waits until it is shown.
func (b *tab) open(url string) {
	b.t.Helper()
	if b.used {
		b.do(chromedp.Navigate("about:blank"))
	}
	b.used = true
	b.do(chromedp.Navigate(url))
	b.until(shown)
}

// shown is true when a frame of the server is on the page.
const shown = `["live", "polling"].includes(document.querySelector("#state").dataset.state) && document.querySelector("h1") !== null`

// until waits until a condition of the page is true.
func (b *tab) until(condition string, args ...any) {
	b.t.Helper()
	condition = fmt.Sprintf(condition, args...)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	look := fmt.Sprintf(`new Promise((ready) => { const look = () => { let ok = false; try { ok = %s } catch {} ok ? ready(true) : setTimeout(look, 20) }; look() })`, condition)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatalf("%v: it never was so that %s\n%s", err, condition, b.look())
	}
}

// look describes the page, for failures.
func (b *tab) look() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%s\n%v\n%q", text, err, b.errors)
}

// value evaluates an expression in the page.
func value[T any](b *tab, expression string, args ...any) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.look())
	}
	return v
}

// press sends keys to the element with the focus.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// click clicks on the first element that matches a CSS selector, once it is there.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// axe returns the source of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("EPHEMERAL_AXE"); path != "" {
		source, err := os.ReadFile(path)
		return string(source), err
	}
	dir, err := os.MkdirTemp("", "axe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "axe-core")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

// accessible fails for everything serious that axe-core finds on the page.
func (b *tab) accessible(source, what string) {
	b.t.Helper()
	if !value[bool](b, `typeof axe === "object"`) {
		value[bool](b, "%s", source+"\n; true")
	}
	type violation struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	found := value[json.RawMessage](b, `axe.run().then((r) => r.violations.map(({id, impact, help, nodes}) => ({ID: id, Impact: impact, Help: help, Nodes: nodes.slice(0, 3).map((n) => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`)
	var violations []violation
	if err := json.Unmarshal(found, &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		if slices.Contains([]string{"serious", "critical"}, v.Impact) {
			b.t.Errorf("%s: axe-core: %s (%s): %s\n%+v", what, v.ID, v.Impact, v.Help, v.Nodes)
		} else {
			b.t.Logf("%s: axe-core: %s (%s): %s\n%+v", what, v.ID, v.Impact, v.Help, v.Nodes)
		}
	}
}
