package browser

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// The view of time has a row for each coordinator, lane and class, with numbers as text.
func TestTime(t *testing.T) {
	b := newTab(t, chromium(t))
	source, err := axe()
	if err != nil {
		need(t, "there is no axe-core: %v", err)
	}
	shop := newShop(t)
	page := core.Must(statuspage.New(statuspage.Options{Title: "shop", Coordinators: []core.Inspector{shop.orders, shop.uploads, shop.mails}, MaxTimes: 5}))
	site := httptest.NewServer(page)
	defer site.Close()
	defer page.Close()
	shop.fill()
	for i := range 60 {
		core.Must(shop.uploads.Enqueue(t.Context(), time.Duration(i*i)*20*time.Microsecond))
	}
	b.open(site.URL + "/")
	b.until(`/^\d+ goroutines · heap \d+\.\d MB · \d+ GC cycles?, \d+\.\d %% of the processor time$/.test(document.querySelector("#main .note").textContent)`)
	b.open(site.URL + "/#time")
	b.until(`[...document.querySelectorAll(".times tbody th")].map((h) => h.textContent).join() === "orders,orders · lane hot,orders · lane normal,orders · lane slow,orders · class heavy,uploads"`)
	last := `document.querySelector(".times tbody tr:last-child")`
	b.until(last + `.querySelector(".num").textContent === "60" && /^p50 .* · p95 \d+ ms · p99 \d+ ms$/.test(` + last + `.lastChild.innerText)`)
	b.until(last + `.querySelector("path").getAttribute("d").length > 20 && /^The bars are for times from .* to \d/.test(document.querySelector(".table + .note").textContent)`)
	b.until(`[...document.querySelectorAll(".note")].at(-1).textContent === "The option MaxTimes leaves out 1 more coordinator."`)
	b.each(func(name string) {
		b.accessible(source, "time "+name)
		if wide := value[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: %d pixels too wide", name, wide)
		}
		b.shoot("time-" + name)
	})
	value[bool](b, `(s = document.querySelector("select[name=minutes]"), s.value = "60", s.dispatchEvent(new Event("input", { bubbles: true })))`)
	b.until(`location.hash === "#time?minutes=60" && feed.params.minutes === "60" && ` + last + `.querySelector(".num").textContent === "60"`)
	page.Close()
	b.check(site.URL, false)
}
