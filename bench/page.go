package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// pageRows measure a raise, and an operation, while 50 clients read streams of a status page
// that shows the sink and the coordinator, beside none. There is one core, and clients are
// writers in the same process: so the ratio includes their processor time and that of the
// page, but no network.
func pageRows() []Row {
	raise := func(name string, goal float64, clients int) Side {
		return Side{name, goal, func() Body {
			s := fullSink(signals.SinkOptions{Capacity: small})
			return Body{Run: func(n int) { raiseNames(s, n) }, Close: watched(s, nil, clients)}
		}}
	}
	run := func(name string, goal float64, clients int) Side {
		return Side{name, goal, func() Body {
			c := coordinator(nothing, 0)
			end := watched(c.Sink(), c, clients)
			return Body{Run: running(c, 1), Close: func() { end(); check(c.Close()) }}
		}}
	}
	return []Row{
		{Name: "op=raise/clients=50", MaxAllocs: -1, Sides: []Side{onOneCore(raise("ours", 0, 50)), onOneCore(raise("no-page", 1.1, 0))}},
		{Name: "op=run/clients=50", MaxAllocs: -1, Sides: []Side{onOneCore(run("ours", 0, 50)), onOneCore(run("no-page", 1.1, 0))}},
	}
}

// watched makes a page with so many clients, each with one of three views, or no page for no
// clients. It returns a function that ends them.
func watched(s *signals.Sink, c core.Inspector, clients int) (end func()) {
	if clients == 0 {
		return func() {}
	}
	opts := statuspage.Options{Sinks: map[string]*signals.Sink{"main": s}, MaxClients: clients}
	views := []string{"overview", "signals", "signals&pattern=a*"}
	if c != nil {
		opts.Coordinators, views = []core.Inspector{c}, []string{"overview", "operations&order=newest", "signals"}
	}
	page := core.Must(statuspage.New(opts))
	ctx, cancel := context.WithCancel(context.Background())
	var streams, first sync.WaitGroup
	first.Add(clients)
	for i := range clients {
		streams.Go(func() {
			r := httptest.NewRequestWithContext(ctx, "GET", "/api/stream?view="+views[i%len(views)], nil)
			r.RemoteAddr, r.Host, r.ProtoMajor = "127.0.0.1:1", "localhost", 2
			page.ServeHTTP(&reader{header: http.Header{}, first: sync.OnceFunc(first.Done)}, r)
		})
	}
	first.Wait()
	return func() {
		cancel()
		streams.Wait()
		check(page.Close())
	}
}

// reader is a client that reads everything at once.
type reader struct {
	header http.Header
	first  func() // called with each frame
}

func (r *reader) Header() http.Header              { return r.header }
func (r *reader) WriteHeader(code int)             { panic(http.StatusText(code)) } // only errors have one
func (r *reader) Write(p []byte) (int, error)      { r.first(); return len(p), nil }
func (r *reader) Flush()                           {}
func (r *reader) SetReadDeadline(time.Time) error  { return nil }
func (r *reader) SetWriteDeadline(time.Time) error { return nil }
