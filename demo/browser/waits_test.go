package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// deadlocked starts two coordinators whose operations wait for each other, and others that
// wait for them.
func deadlocked(t testing.TB) (pay, ship *core.Coordinator[string]) {
	calls, begin := map[string]*core.Coordinator[string]{}, make(chan bool)
	for _, name := range []string{"pay", "ship"} {
		calls[name] = core.Must(core.NewCoordinator(func(ctx context.Context, on string) error {
			<-begin
			return calls[on].Do(ctx, name)
		}, core.Options{Name: name, MaxConcurrency: 1}))
		t.Cleanup(func() { calls[name].Close() })
	}
	for _, call := range [][2]string{{"pay", "ship"}, {"ship", "pay"}, {"pay", "ship"}, {"pay", "ship"}, {"pay", "ship"}} {
		core.Must(calls[call[0]].Enqueue(t.Context(), call[1]))
	}
	close(begin)
	return calls["pay"], calls["ship"]
}

// shoot writes a screenshot if the test is asked for them.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("EPHEMERAL_SCREENSHOTS_OF_TESTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// each calls do for light and dark, on a wide and on a narrow screen.
func (b *tab) each(do func(name string)) {
	b.t.Helper()
	for _, width := range []int64{1400, 390} {
		b.do(chromedp.EmulateViewport(width, 844))
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			do(fmt.Sprint(width, "-", scheme))
		}
	}
}

// A cycle over two coordinators is drawn, is said in words, and its operations are links. What goes first is drawn, too.
func TestWaits(t *testing.T) {
	b := newTab(t, chromium(t))
	source, err := axe()
	if err != nil {
		need(t, "there is no axe-core: %v", err)
	}
	pay, ship := deadlocked(t)
	shop := newShop(t)
	shop.fill()
	page := core.Must(statuspage.New(statuspage.Options{Title: "shop", Coordinators: []core.Inspector{pay, ship, shop.orders}}))
	defer page.Close()
	site := httptest.NewServer(page)
	defer site.Close()
	defer page.Close()
	b.open(site.URL + "/#waits")
	b.until(`/^A cycle: operation \d+ of ship waits for operation \d+ of pay, which waits for slots of pay, which waits for /.test(document.querySelector(".cycles").innerText)`)
	b.until(`document.querySelectorAll(".graph path.cycle").length === 6 && document.querySelectorAll(".graph g.cycle").length === 6`)
	b.until(`[...document.querySelectorAll(".graph g.stuck:not(.cycle)")].some((g) => g.textContent.includes("2 operations"))`)
	b.until(`document.querySelector(".graph path.order")`)
	b.until(`[...document.querySelectorAll(".edges tbody tr")].some((row) => /2 items before it go first/.test(row.innerText))`)
	b.until(`[...document.querySelectorAll(".edges tbody tr")].some((row) => /signal db.down of orders/.test(row.innerText))`)
	b.each(func(name string) {
		b.accessible(source, "waits "+name)
		if wide := value[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: %d pixels too wide", name, wide)
		}
		b.shoot("waits-" + name)
	})
	b.do(chromedp.EmulateViewport(1400, 844))
	b.click(".edges tbody th a")
	b.until(`document.querySelector("h1").textContent.startsWith("Operation ")`)
	coretest.Check(t, ship.Cancel(core.OperationID(value[int](b, `+document.querySelector("h1").textContent.split(" ")[1]`)), nil) || pay.Stats().Running == 1, "the link does not lead to an operation of the cycle")
	pay.Close()
	b.open(site.URL + "/#waits")
	b.until(`document.querySelector(".edges tbody tr") && !document.querySelector(".cycles").hasChildNodes()`)
	page.Close()
	b.check(site.URL, false)
}
