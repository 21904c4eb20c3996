package statuspage_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

func TestNewRefuses(t *testing.T) {
	_, err := statuspage.New(statuspage.Options{
		Name: "ops", Sinks: map[string]*signals.Sink{"a": nil}, Coordinators: []core.Inspector{nil},
		Queues: []inspect.StoredQueue{nil}, Schedules: []inspect.Schedules{nil},
	})
	require.Error(t, err)
	for _, text := range []string{`statuspage: ops: Options.Sinks["a"] is nil`, "Options.Coordinators[0]", "Options.Queues[0]", "Options.Schedules[0]"} {
		assert.ErrorContains(t, err, text)
	}
	_, err = statuspage.New(statuspage.Options{Hosts: []string{""}})
	assert.ErrorContains(t, err, "Options.Hosts")
	_, err = statuspage.New(statuspage.Options{Allow: anything}) // a loopback peer may be a proxy
	assert.EqualError(t, err, "statuspage: statuspage: Options.Allow needs an Options.View, such as Loopback or Token")
}

// The test checks everything that a page shows for a small program.
func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		slow := newCoordinator(t, block, core.Options{Name: "slow", Sink: sink, MaxConcurrency: 1, DeferOn: "halt.*", Lanes: []core.Lane{{Name: "hot"}, {Name: "cold"}}})
		var child core.OperationID
		orders := newCoordinator(t, func(ctx context.Context, item string) error {
			o := core.OperationFrom(ctx)
			o.Set("invoice", 12)
			p, err := progress.New(o, "rows", 4, progress.Options{})
			if err != nil {
				return err
			}
			p.Add(1)
			signals.NewKind[[]int]("order.priced").Raise(o, "", nil)
			child, err = slow.Lane("cold").Enqueue(ctx, item)
			if err != nil {
				return err
			}
			return slow.Wait(ctx, child)
		}, core.Options{Name: "orders", Sink: sink})
		again := newCoordinator(t, func(context.Context, string) error { return errors.New("no paper") }, core.Options{Name: "orders", Sink: sink})
		jobs := &store{name: "jobs", dead: []inspect.StoredItem{{ID: 5, Key: "k", State: "dead", Attempts: 3, Ended: time.Now(), Err: "boom"}, {ID: 6}}}
		p := newPage(t, statuspage.Options{
			Title: "shop", Sinks: map[string]*signals.Sink{"main": sink}, Coordinators: []core.Inspector{slow, orders, again},
			Queues: []inspect.StoredQueue{jobs}, Schedules: []inspect.Schedules{&plans{names: []string{"report"}}}, View: statuspage.Loopback, Allow: anything,
		})

		first := enqueue(t, slow, "a")[0]
		synctest.Wait()
		sink.Raise("order.placed")
		var placed signals.Signal
		for s := range sink.Sense(signals.Query{Pattern: "order.placed"}) {
			placed = s
		}
		order, err := orders.Enqueue(signals.CausedBy(context.Background(), placed), "b")
		require.NoError(t, err)
		failed := enqueue(t, again, "c")[0]
		release := sink.Hold("halt.deploy", "web", 0)
		defer release()
		time.Sleep(1500 * time.Millisecond)

		o := get(t, p, "overview")
		assert.Equal(t, "shop", o["title"])
		assert.Equal(t, false, o["readOnly"])
		assert.Equal(t, []any{"slow", "orders", "orders-2"}, o.each("coordinators", "id"), "equal names get a number")
		assert.Equal(t, []any{"orders"}, o.each("coordinators", "name")[1:2])
		assert.EqualValues(t, 1, o.at("coordinators", 0, "pending"))
		assert.EqualValues(t, 1, o.at("coordinators", 2, "failed"))
		assert.Equal(t, "2000-01-01T00:00:00.000Z", o.at("coordinators", 0, "oldest"))
		assert.Equal(t, []any{"hot", "cold"}, []any{o.at("coordinators", 0, "lanes", 0, "name"), o.at("coordinators", 0, "lanes", 1, "name")})
		assert.Equal(t, "halt.deploy", o.at("coordinators", 0, "gates", 0, "signal", "name"))
		assert.EqualValues(t, 1, o.at("coordinators", 0, "gates", 0, "matches"))
		assert.Contains(t, o.at("coordinators", 0, "can"), "cancel")
		assert.Equal(t, "main", o.at("sinks", 0, "name"))
		assert.Equal(t, "main", o.at("coordinators", 0, "sink"))
		assert.EqualValues(t, 1, o.at("sinks", 0, "held"))
		assert.Equal(t, "dead", o.at("queues", 0, "counts", 0, "state"))
		assert.EqualValues(t, 3000, o.at("queues", 0, "oldestMs"))
		assert.Equal(t, "report", o.at("schedules", 0, "name"))
		assert.Equal(t, "nightly", o.at("schedules", 0, "group"))

		// The reason leads to the operation for which it waits, across coordinators.
		o = get(t, p, "operations?coordinator=orders&status=running,pending")
		assert.Equal(t, []any{id(order)}, o.each("operations", "id"))
		assert.Equal(t, "string", o.at("operations", 0, "item"))
		assert.Equal(t, map[string]any{"done": 1.0, "total": 4.0, "text": "1/4"}, o.at("operations", 0, "progress"))
		assert.Equal(t, fmt.Sprintf(`its body waits for operation %d of "slow"`, child), o.at("operations", 0, "waits"))
		assert.Equal(t, id(child), o.at("operations", 0, "waitsFor", 0, "id"))
		assert.Equal(t, "slow", o.at("operations", 0, "waitsFor", 0, "coordinator"))
		o = get(t, p, "operations?coordinator=slow&status=pending")
		assert.Equal(t, id(first), o.at("operations", 0, "waitsFor", 0, "id"))
		assert.Contains(t, o.at("operations", 0, "waits"), `held signal "halt.deploy" for "web"`)
		o = get(t, p, "operations?coordinator=orders-2")
		assert.Equal(t, "no paper", o.at("operations", 0, "error"))
		assert.Equal(t, "failed", o.at("operations", 0, "status"))
		assert.Equal(t, id(failed), o.at("operations", 0, "id"))

		// The view of one operation has its parent and children.
		o = get(t, p, fmt.Sprintf("operation?coordinator=orders&id=%d", order))
		assert.Equal(t, []any{"progress", "order.priced"}, o.each("signals", "name"))
		assert.Equal(t, []any{"progress.Report", "[]int"}, o.each("signals", "payload"))
		assert.Equal(t, []any{map[string]any{"name": "order.placed"}}, o.at("signals", 0, "causes"))
		assert.EqualValues(t, 0, o.at("signals", 0, "offsetMs"))
		assert.Equal(t, "order.placed", o.at("cause", "name"))
		assert.EqualValues(t, placed.Seq, o.at("cause", "seq"))
		assert.Equal(t, []any{map[string]any{"name": "invoice", "type": "int"}}, o["values"])
		assert.Equal(t, []any{id(child)}, o.each("children", "id"))
		assert.Equal(t, []any{"nested", "limit", "lane", "deferred"}[:1], []any{o.at("explanation", "reasons", 0, "kind")})
		assert.Greater(t, len(o.at("explanation", "reasons").([]any)), 1, "why the child waits is explained, too")
		o = get(t, p, fmt.Sprintf("operation?coordinator=slow&id=%d", child))
		assert.Equal(t, id(order), o.at("parent", "id"))
		assert.Equal(t, "orders", o.at("parent", "coordinator"))

		o = get(t, p, "signals?limit=2&key=&pattern=order.*")
		assert.Equal(t, []any{"order.placed", "order.priced"}, o.each("signals", "name"))
		assert.Equal(t, "orders", o.at("signals", 1, "coordinator"))
		assert.Equal(t, []any{"order", "halt", "progress"}, o.each("families", "family"))
		assert.Equal(t, []any{"halt.deploy"}, o.each("held", "name"))
		assert.Equal(t, "slow", o.at("held", 0, "gates", 0, "coordinator"))

		o = get(t, p, "items?queue=jobs&limit=1")
		assert.Equal(t, []any{"boom"}, o.each("items", "error"))
		assert.Equal(t, "5", o["next"])
		assert.Equal(t, inspect.ItemQuery{State: "halted|dead", Limit: 1}, jobs.last)
		assert.Equal(t, []any{6.0}, get(t, p, "items?after=5&state=any&key=k&lane=l&class=c&error=e").each("items", "id"))
		assert.Equal(t, inspect.ItemQuery{Key: "k", Lane: "l", Class: "c", Err: "e", After: "5", Limit: 50}, jobs.last)
	})
}

func TestQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := core.NewKeyedCoordinator(func(s string) string { return s[:1] }, block, core.Options{
			Name: "c", MaxConcurrency: 1, Lanes: []core.Lane{{Name: "hot"}, {Name: "cold"}}, Classes: []core.Class{{Name: "eu"}},
		})
		require.NoError(t, err)
		defer c.Close()
		var ids []any
		for i, item := range []string{"a1", "b2", "a3", "c4"} {
			n, err := []*core.Coordinator[string]{c.Lane("hot"), c.Lane("cold"), c.Lane("hot"), c.Lane("hot").Class("eu")}[i].Enqueue(context.Background(), item)
			require.NoError(t, err)
			ids = append(ids, id(n))
		}
		synctest.Wait()
		sink := signals.NewSink(signals.SinkOptions{})
		sink.RaiseKey("x.a", "k")
		sink.RaiseKey("x.b", "l")
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": sink}, Queues: []inspect.StoredQueue{&store{name: "q"}, &store{name: "q"}}})
		for query, want := range map[string][]any{
			"":                                ids,
			"status=running":                  ids[:1],
			"status=running,pending":          ids,
			"key=a":                           {ids[0], ids[2]},
			"lane=cold":                       ids[1:2],
			"class=eu":                        ids[3:],
			"signal=none.*":                   nil,
			"limit=2":                         ids[:2],
			fmt.Sprintf("after=%v", ids[1]):   ids[2:],
			"order=newest&limit=1":            ids[3:],
			"coordinator=c&status=succeeded":  nil,
			"order=oldest&status=&limit=200":  ids,
			"after=9223372036854775807&key=a": nil,
		} {
			o := get(t, p, "operations?"+query)
			assert.Equal(t, want, o.each("operations", "id"), query)
		}
		// A full last page leads to no other.
		for query, next := range map[string]any{"limit=2": ids[1], "limit=4": 0.0, "limit=5": 0.0, fmt.Sprint("limit=2&after=", ids[1]): 0.0, "limit=4&order=newest": 0.0} {
			o := get(t, p, "operations?"+query)
			assert.Equal(t, []any{next, 4.0}, []any{o["next"], o["matches"]}, query)
		}
		assert.Equal(t, []any{"x.b"}, get(t, p, "signals?after=1").each("signals", "name"))
		assert.Equal(t, []any{"x.a"}, get(t, p, "signals?key=k").each("signals", "name"))
		_, ok := sink.Import(signals.Signal{Name: "x.c", Key: "far"}, "shop-2")
		assert.True(t, ok)
		assert.Equal(t, []any{"shop-2"}, get(t, p, "signals?key=far").each("signals", "node"))

		for target, code := range map[string]int{
			"operations?limit=201": 400, "operations?limit=x": 400, "operations?status=busy": 400, "operations?order=up": 400,
			"operations?stauts=failed": 400, "operation?id=-1": 400, "operation?id=999999": 404, "operations?coordinator=d": 404,
			"operations?status=failed&status=running": 400, "signals?sink=d": 404, "items": 400, "items?queue=d": 404, "nothing": 404, "stream?view=nothing": 404, "stream?view=operations&limit=x": 400, "": 404,
		} {
			w := request(p, "GET", "/api/"+target, "", nil)
			assert.Equal(t, code, w.Code, target)
			assert.NotEmpty(t, decode(t, w.Body.String())["error"], target)
		}
		several := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c, c}, Sinks: map[string]*signals.Sink{"s": sink, "r": sink}})
		for target, want := range map[string]string{
			"operations?status=failed": "there are several coordinators: the parameter coordinator must name one",
			"signals":                  "there are several sinks: the parameter sink must name one",
		} {
			w := request(several, "GET", "/api/"+target, "", nil)
			assert.Equal(t, 400, w.Code, target)
			assert.Equal(t, want, decode(t, w.Body.String())["error"])
		}
	})
}

// Fault avoided: a page that any web site can read or press, through a name that resolves
// to a loopback address, a frame, a form, or a proxy in front.
func TestGuard(t *testing.T) {
	local := func(c *http.Request) {}
	remote := func(r *http.Request) { r.RemoteAddr = "192.0.2.1:80" }
	header := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, "x") }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	rebound := func(r *http.Request) { // a proxy on the same machine, or an address that is not known
		r.RemoteAddr, r.Host = "@", "evil.example"
		*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv6loopback}))
	}
	for _, c := range []struct {
		name   string
		view   func(*http.Request) bool
		change func(*http.Request)
		code   int
	}{
		{"local", nil, local, 200},
		{"local, IPv6", nil, func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4711", "[::1]:80" }, 200},
		{"local, mapped", nil, func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:4711" }, 200},
		{"remote", nil, remote, 403},
		{"no address", nil, func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		{"Forwarded", nil, header("Forwarded"), 403},
		{"X-Forwarded-For", nil, header("X-Forwarded-For"), 403},
		{"X-Forwarded-Host", nil, header("X-Forwarded-Host"), 403},
		{"X-Real-IP", nil, header("X-Real-IP"), 403},
		{"Via", nil, header("Via"), 403},
		{"foreign host", nil, host("evil.example"), 403},
		{"foreign host with localhost in it", nil, host("localhost.evil.example:80"), 403},
		{"no host", nil, host(""), 403},
		{"IP as host", nil, host("127.0.0.1"), 200},
		{"host of the options", nil, host("Status.internal:80"), 200},
		{"View permits remote", anybody, func(r *http.Request) { remote(r); r.Host = "status.example" }, 200},
		{"View permits, host does not", anybody, host("evil.example"), 403},
		{"View permits, local address, host does not", anybody, rebound, 403},
		{"View refuses", func(*http.Request) bool { return false }, local, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.view == nil {
				readOnly := newPage(t, statuspage.Options{Hosts: []string{"status.internal"}})
				assert.Equal(t, c.code, request(readOnly, "GET", "/", "", c.change).Code, "without a View")
				c.view = statuspage.Loopback
			}
			p := newPage(t, statuspage.Options{View: c.view, Allow: anything, Hosts: []string{"status.internal"}})
			for _, target := range []string{"/", "/page.js", "/api/overview", "/api/nothing"} {
				w := request(p, "GET", target, "", c.change)
				want := c.code
				if target == "/api/nothing" && want == 200 {
					want = 404
				}
				assert.Equal(t, want, w.Code, target)
				h := w.Result().Header
				assert.Regexp(t, `^default-src 'none'; script-src 'self';.* frame-ancestors 'none'`, h.Get("Content-Security-Policy"), target)
				assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe")
				assert.Equal(t, []string{"nosniff", "no-store", "no-referrer", "same-origin"}, []string{
					h.Get("X-Content-Type-Options"), h.Get("Cache-Control"), h.Get("Referrer-Policy"), h.Get("Cross-Origin-Resource-Policy"),
				}, target)
			}
			w := request(p, "POST", "/api/act", `{"action":"none"}`, c.change)
			assert.Equal(t, map[int]int{200: 400, 403: 403}[c.code], w.Code, "act")
		})
	}
	p := newPage(t, statuspage.Options{})
	for target, method := range map[string]string{"/api/act": "GET", "/api/overview": "POST", "/": "PUT"} {
		w := request(p, method, target, "", nil)
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, target)
		assert.NotEmpty(t, w.Header().Get("Allow"), target)
	}
	for _, target := range []string{"/", "/page.css", "/api/overview", "/api/stream?view=overview"} {
		assert.Equal(t, 200, request(p, "HEAD", target, "", nil).Code, target)
	}
}

func TestActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		c := newCoordinator(t, block, core.Options{Name: "c", MaxConcurrency: 1})
		ids := enqueue(t, c, "a", "b")
		q, s := &store{name: "q"}, &plans{names: []string{"report", "*"}}
		fixed := struct{ core.Inspector }{c} // not an inspect.Actions
		p := newPage(t, statuspage.Options{
			Coordinators: []core.Inspector{c, fixed}, Queues: []inspect.StoredQueue{q}, Schedules: []inspect.Schedules{s},
			Sinks: map[string]*signals.Sink{"s": sink}, Sink: sink, Name: "ops",
			Who:   func(*http.Request) string { return "ada" },
			View:  statuspage.Loopback,
			Allow: func(_ *http.Request, a statuspage.Action) bool { return a.Who == "ada" && a.Kind != "evict" },
		})
		sink.Raise("x.y")
		for _, a := range []struct {
			body string
			code int
			want any // the value of done, or part of the error
		}{
			{fmt.Sprintf(`{"action":"cancel","coordinator":"c","operation":%d}`, ids[1]), 200, true},
			{`{"action":"cancel","coordinator":"c","operation":999999}`, 200, false},
			{fmt.Sprintf(`{"action":"evict","coordinator":"c","operation":%d}`, ids[1]), 403, "evict is not allowed"},
			{`{"action":"pause","coordinator":"c"}`, 200, true},
			{`{"action":"limit","coordinator":"c","limit":7}`, 200, true},
			{`{"action":"limit","coordinator":"c","limit":-7}`, 400, "-7"},
			{`{"action":"pause","coordinator":"c-2"}`, 400, "cannot be steered"},
			{`{"action":"pause"}`, 404, "no coordinator"},
			{`{"action":"again","queue":"q","item":7}`, 200, true},
			{`{"action":"discard","queue":"q","item":8}`, 200, false},
			{`{"action":"discard","queue":"q","item":13}`, 500, "disk full"},
			{`{"action":"again","item":7}`, 404, "no queue"},
			{`{"action":"pauseQueue","queue":"q"}`, 200, true},
			{`{"action":"resumeQueue","queue":"q"}`, 200, true},
			{`{"action":"pauseSchedule","schedules":"nightly","schedule":"report"}`, 200, true},
			{`{"action":"resumeSchedule","schedules":"nightly","schedule":"report"}`, 200, false},
			{`{"action":"runNow","schedules":"nightly","schedule":"report"}`, 200, true},
			{`{"action":"pauseSchedule","schedules":"nightly","schedule":"*"}`, 404, "no schedule"},
			{`{"action":"runNow","schedule":"report"}`, 404, "no group"},
			{`{"action":"retract","sink":"s","signal":"x.*, <&>"}`, 200, true},
			{`{"action":"discard","queue":"q","item":7,"coordinator":"c"}`, 400, "not its own"},
			{`{"action":"explode"}`, 400, `no action "explode": the actions are again, againAll, cancel, cancelAll, discard, discardAll, evict, limit, pause, pauseQueue, pauseSchedule, resume, resumeQueue, resumeSchedule, retract, runNow`},
			{`{"action":"pause","coordinator":"c"} {"action":"explode"}`, 400, "after top-level value"},
			{`{"action":"pause","coordinator":"d","coordinator":"c"}`, 400, "a field is there twice"},
			{`{"action":"retract","sink":"s","signal":"<&>","signal":"<&>"}`, 400, "a field is there twice"},
			{`{"action":"pause","Coordinator":"c"}`, 400, "not its own: Coordinator"},
			{`{"action":"pause","coordinator":7}`, 400, "string"},
			{`{"action":"pause","coordinator":"c"`, 400, "unexpected end"},
			{`["pause"]`, 400, "cannot unmarshal array"},
			{`{"action":"limit","coordinator":"c","limit":1000001}`, 400, "must be 1 to 1000000"},
			{`{"action":"pause","coordinator":"c","force":true}`, 400, "force"},
			{`not JSON`, 400, "JSON"},
			{`{"action":"` + strings.Repeat("x", 1<<15) + `"}`, 400, "too large"},
		} {
			code, answer := act(t, p, "%s", a.body)
			assert.Equal(t, a.code, code, a.body)
			if text, isError := a.want.(string); isError {
				assert.Contains(t, answer["error"], text, a.body)
			} else {
				assert.Equal(t, a.want, answer["done"], a.body)
			}
		}
		stats := c.Stats()
		assert.True(t, stats.Paused)
		assert.Equal(t, 7, stats.Limit)
		assert.False(t, sink.Has("x.y"))
		assert.Equal(t, []string{"again7", "discard8", "discard13", "pause0", "resume0"}, q.calls)
		assert.Equal(t, []string{"pause report", "resume report", "run report"}, s.calls)
		snapshot, _ := c.Lookup(ids[1])
		assert.ErrorContains(t, snapshot.Err, fmt.Sprintf("statuspage: ops: operation %d cancelled by ada", ids[1]))

		var acted, refused []string
		for s, a := range statuspage.Acted.Sense(sink, signals.Query{}) {
			acted = append(acted, fmt.Sprint(a.Kind, " ", s.Key, " ", a.Who, " ", a.Done, " ", a.Err != nil))
		}
		for s, a := range statuspage.Refused.Sense(sink, signals.Query{}) {
			refused = append(refused, fmt.Sprint(a.Kind, " ", s.Key, " ", a.Who, " ", a.Err))
		}
		assert.Len(t, acted, 18, "every action that was allowed")
		assert.EqualValues(t, len(acted), p.Stats().Acted)
		assert.Equal(t, "cancel c ada true false", acted[0])
		assert.Equal(t, "discard q ada false true", acted[8])
		assert.Equal(t, []string{"evict c ada evict is not allowed"}, refused)

		code, _ := act(t, p, `{"action":"resume","coordinator":"c"}`)
		assert.Equal(t, 200, code)
		assert.False(t, c.Stats().Paused)
	})
}

// A request that a foreign page makes a browser send is refused and counted. It raises no
// signal.
func TestActionRefused(t *testing.T) {
	c := newCoordinator(t, block, core.Options{Name: "c"})
	readOnly := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}})
	open := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}, View: statuspage.Loopback, Allow: anything})
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, a := range []struct {
		name   string
		page   *statuspage.Page
		change func(*http.Request)
		code   int
		count  statuspage.Stats
	}{
		{"read-only", readOnly, nil, 403, statuspage.Stats{Requests: 1, ReadOnly: 1}},
		{"cross-site, read-only", readOnly, set("Sec-Fetch-Site", "cross-site"), 403, statuspage.Stats{Requests: 2, ReadOnly: 1, CrossSite: 1}},
		{"cross-site", open, set("Sec-Fetch-Site", "cross-site"), 403, statuspage.Stats{Requests: 1, CrossSite: 1}},
		{"other origin", open, set("Origin", "https://evil.example"), 403, statuspage.Stats{Requests: 2, CrossSite: 2}},
		{"form", open, set("Content-Type", "text/plain"), 415, statuspage.Stats{Requests: 3, CrossSite: 2, Unreadable: 1}},
	} {
		t.Run(a.name, func(t *testing.T) {
			w := request(a.page, "POST", "/api/act", `{"action":"pause","coordinator":"c"}`, a.change)
			assert.Equal(t, a.code, w.Code)
			assert.False(t, c.Stats().Paused)
			assert.Zero(t, a.page.Sink().Stats().Raised)
			assert.Equal(t, a.count, a.page.Stats())
		})
	}
	assert.Equal(t, true, get(t, readOnly, "overview")["readOnly"])
	assert.Empty(t, get(t, readOnly, "overview").at("coordinators", 0, "can"))
}

// everyView is what a page shows with the same text in every field that comes from outside.
func everyView(t *testing.T, text string, redact func(string) string) (views []string) {
	sink := signals.NewSink(signals.SinkOptions{})
	c, err := core.NewKeyedCoordinator(func(s string) string { return s }, func(ctx context.Context, _ string) error {
		o := core.OperationFrom(ctx)
		o.Set(text, text)
		signals.NewKind[string](text+".secret").Raise(o.Because(signals.Signal{Name: text}), text, text)
		if o.ID()%2 == 0 {
			return errors.New(text)
		}
		defer o.WaitsFor(text, time.Time{})()
		<-ctx.Done()
		return nil
	}, core.Options{Name: text, Sink: sink, MaxConcurrency: 2, DeferOn: "halt*", CancelOn: text, Lanes: []core.Lane{{Name: text}}})
	require.NoError(t, err)
	defer c.Close()
	q := &store{name: text, dead: []inspect.StoredItem{{ID: 13, Key: text, Lane: text, State: text, Err: text}}}
	p := newPage(t, statuspage.Options{
		Title: text, Sinks: map[string]*signals.Sink{text: sink}, Coordinators: []core.Inspector{c}, Queues: []inspect.StoredQueue{q},
		Schedules: []inspect.Schedules{&plans{names: []string{text}}}, Redact: redact, View: statuspage.Loopback, Allow: anything,
	})
	for range 4 {
		_, err := c.Enqueue(context.Background(), text)
		require.NoError(t, err)
	}
	synctest.Wait()
	sink.Hold("halt"+text, text, 0)
	targets := []string{"overview", "operations", "errors", "signals", "graph", "time", "items", "item?id=13", "schedule?schedule=" + escaped(text), "operations?coordinator=" + escaped(text+"?")}
	for s := range c.Operations(core.OperationQuery{}) {
		targets = append(targets, fmt.Sprintf("operation?id=%d", s.ID))
	}
	for _, target := range targets {
		w := request(p, "GET", "/api/"+target, "", nil)
		assert.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
		views = append(views, w.Body.String())
	}
	_, answer := act(t, p, `{"action":"discard","queue":%q,"item":13}`, text)
	return append(views, answer["error"].(string))
}

// Fault avoided: names and keys that come from outside become part of the page.
func TestUntrustedTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attack = "</script><script>alert(1)</script>&'\u2028"
		views := everyView(t, attack, nil)
		all := strings.Join(views[:len(views)-1], "\n")
		assert.NotContains(t, all, "<")
		assert.NotContains(t, all, "\u2028")
		assert.Greater(t, strings.Count(all, `\u003cscript\u003ealert(1)`), 40, "in every field")
	})
}

// Fault avoided: one long text makes every frame long, or an error that repeats it.
func TestLongTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("ä", 20_000)
		shown := strings.Repeat("ä", 500) + "…"
		views := everyView(t, long, nil)
		views = append(views, request(newPage(t, statuspage.Options{}), "GET", "/api/overview?"+long, "", nil).Body.String())
		for _, view := range views {
			assert.NotContains(t, view, strings.Repeat("ä", 501))
		}
		o := decode(t, views[0])
		assert.Equal(t, shown, o.at("coordinators", 0, "id"), "and it is found by this id:")
		assert.NotEmpty(t, decode(t, views[1])["operations"])

		sinks := map[string]*signals.Sink{long + "a": signals.NewSink(signals.SinkOptions{}), long + "b": signals.NewSink(signals.SinkOptions{})}
		o = get(t, newPage(t, statuspage.Options{Sinks: sinks}), "overview")
		assert.Equal(t, []any{shown, shown + "-2"}, o.each("sinks", "name"))
	})
}

func TestRedact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "s3cret"
		views := everyView(t, secret, func(text string) string { return strings.ReplaceAll(text, secret, "xxx") })
		shown := regexp.MustCompile(`"(id|name|title|coordinator|lane|of|source|sink|queue|group|state|node|type|error)":"(there is no coordinator \\")?s3cret[^"]*"`)
		for _, view := range views {
			assert.NotContains(t, shown.ReplaceAllString(view, ""), secret, "only names that the program gave are left")
		}
		all := strings.Join(views, "\n")
		for _, text := range []string{`"key":"xxx"`, `"error":"xxx"`, `"name":"xxx.secret"`, `"family":"xxx"`, `"causes":[{"name":"xxx"}]`, `"pattern":"xxx"`, `"why":"why: xxx"`, `"steps":[{"name":"xxx","state":"s3cret","signal":"xxx"}]`, `"description":"about xxx"`, `"coordinator":"s3cret","kind":"deferred","pattern":"halt*"`, "its body waits for xxx", `signal \"haltxxx\" for \"xxx\"`} {
			assert.Contains(t, all, text)
		}
		assert.NotContains(t, all, "disk full at secret s3cret")
	})
}

// Items, values and payloads may hold anything. Only their types are shown, and texts of items if the program has Show.
func TestShowsTypesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(ctx context.Context, item string) error {
			core.OperationFrom(ctx).Set("card", item)
			signals.NewKind[string]("paid").Raise(core.OperationFrom(ctx), "", item)
			return block(ctx, item)
		}, core.Options{Name: "c"})
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": c.Sink()}})
		n := enqueue(t, c, "4111-1111")[0]
		synctest.Wait()
		for _, target := range []string{"operations", fmt.Sprintf("operation?id=%d", n), "signals"} {
			w := request(p, "GET", "/api/"+target, "", nil)
			assert.NotContains(t, w.Body.String(), "4111", target)
			assert.Contains(t, w.Body.String(), `"string"`, target)
		}

		show := func(item any) string { return "card " + item.(string)[:1] }
		shows := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}, Show: func(item any) string { return show(item) }, Redact: strings.ToUpper})
		assert.Equal(t, []any{"CARD 4"}, get(t, shows, "operations").each("operations", "itemText"))
		show = func(any) string { return strings.Repeat("x", 2000) }
		assert.Equal(t, strings.Repeat("X", 1000)+"…", get(t, shows, fmt.Sprintf("operation?id=%d", n)).at("operation", "itemText"))
		show = func(any) string { panic("oh") }
		assert.Equal(t, []any{"STATUSPAGE: THE PROGRAM PANICKED: OH"}, get(t, shows, "operations").each("operations", "itemText"))
		ended := newCoordinator(t, func(context.Context, string) error { return nil }, core.Options{Name: "c"})
		require.NoError(t, ended.Do(t.Context(), "gone"))
		assert.Nil(t, get(t, newPage(t, statuspage.Options{Coordinators: []core.Inspector{ended}, Show: show}), "operations").at("operations", 0, "itemText"), "an item that has gone is not shown")
	})
}

// The page is one file with its style and script, and works under any prefix.
func TestFiles(t *testing.T) {
	p := newPage(t, statuspage.Options{})
	mux := http.NewServeMux()
	mux.Handle("/debug/ephemeral/", http.StripPrefix("/debug/ephemeral", p))
	size := 0
	for name, kind := range map[string]string{"": "text/html", "page.css": "text/css", "page.js": "text/javascript"} {
		w := request(mux, "GET", "/debug/ephemeral/"+name, "", nil)
		require.Equal(t, 200, w.Code, name)
		assert.True(t, strings.HasPrefix(w.Header().Get("Content-Type"), kind), name)
		size += w.Body.Len()
		assert.NotRegexp(t, `(src|href|action)="?/|url\(|<script>|<style|\son[a-z]+=|innerHTML|insertAdjacentHTML`, w.Body.String(), name)
	}
	assert.Less(t, size, 88_000)
	_, err := os.Stat("page/page.html")
	require.NoError(t, err)
	for _, name := range []string{"../go.mod", "page", "page/page.html", "other.js"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path, r.RemoteAddr, r.Host = "/"+name, "127.0.0.1:1", "localhost"
		p.ServeHTTP(w, r)
		assert.Equal(t, 404, w.Code, name)
	}
}

// Files and long answers are compressed for a client that accepts it, and are the same then.
func TestCompressed(t *testing.T) {
	c := newCoordinator(t, block, core.Options{Name: "c"})
	enqueue(t, c, strings.Repeat("k", 50), "a", "b", "c", "d")
	p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}})
	for _, target := range []string{"/page.js", "/", "/api/operations", "/api/overview"} {
		plain := request(p, "GET", target, "", nil)
		for list, want := range map[string]bool{"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0, br": false, "gzip; q=0.0": false, "x-gzip": false, "gzip;q=x": false} {
			w := request(p, "GET", target, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", list) })
			want = want && plain.Body.Len() >= 1024
			require.Equal(t, want, w.Header().Get("Content-Encoding") == "gzip", "%s %s", target, list)
			assert.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
			if want {
				z, err := gzip.NewReader(w.Body)
				require.NoError(t, err)
				assert.Less(t, w.Body.Len(), plain.Body.Len()/2)
				text, err := io.ReadAll(z)
				require.NoError(t, err)
				assert.InDelta(t, plain.Body.Len(), len(text), 100, target) // times have changed
				assert.True(t, strings.HasPrefix(target, "/api/") || plain.Body.String() == string(text), target)
			}
		}
	}
}

// Whatever a client asks for, the answer is no error of the program.
func FuzzRequest(f *testing.F) {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.RaiseKey("a.b", "k")
	c := newCoordinator(f, block, core.Options{Name: "c"})
	enqueue(f, c, "a")
	p := newPage(f, statuspage.Options{Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": sink}, View: statuspage.Loopback, Allow: anything})
	f.Add("operations", "status=pending,running&after=1&order=newest&signal=*", `{"action":"limit","coordinator":"c","limit":3}`)
	f.Add("signals", "after=18446744073709551615&pattern=?,*", `{"action":"retract","sink":"s","signal":"**"}`)
	f.Add("items", "limit=0", `{"action":"again","queue":"q","item":-1}`)
	f.Add("operation", "id=%zz", `[]`)
	f.Fuzz(func(t *testing.T, view, query, body string) {
		for method, path := range map[string]string{"GET": "/api/" + view, "POST": "/api/act"} {
			w := request(p, method, "/", body, func(r *http.Request) { r.URL.Path, r.URL.RawQuery = path, query })
			assert.NotEqual(t, 500, w.Code)
			assert.NotNil(t, decode(t, w.Body.String()))
		}
	})
}
