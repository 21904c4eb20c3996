package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// hostile is a name that is visible on the page if it is ever read as HTML.
const hostile = `<script>hacked=1</script><img src=x onerror=hacked=1>`

// An order is an item whose work goes on until the test ends it.
type order struct {
	customer string
	steps    int64      // number of steps; one is done
	child    *order     // an order that its work enqueues
	asks     string     // text of what it waits for
	end      chan error // result of its work
}

func newOrder(customer string) order { return order{customer: customer, end: make(chan error, 1)} }

// A program is what a page shows: orders that wait for each other, uploads that come and
// go, a queue and schedules.
type program struct {
	t       testing.TB
	sink    *signals.Sink
	orders  *core.Coordinator[order]
	uploads *core.Coordinator[time.Duration]
	mails   *core.Coordinator[time.Duration]
	queue   inspect.StoredQueue
	item    int64 // of the queue
	plans   inspect.Schedules
	name    func(string) string       // makes all names
	bill    func(customers ...string) // adds items to the queue of a shop
}

// newShop starts a program with a durable queue and a scheduler.
func newShop(t testing.TB) *program {
	p := newProgram(t, func(name string) string { return name })
	invoices := core.Must(durable.New(durable.Memory(), func(customer string) string { return customer }, func(_ context.Context, customer string) error {
		return durable.Permanent(fmt.Errorf("smtp: 550 no mailbox of %s", customer))
	}, durable.Options{Name: "invoices"}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { invoices.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		invoices.Close()
	})
	p.bill = func(customers ...string) { core.Must(invoices.EnqueueAll(ctx, customers)) }
	p.bill("ada", "bob")
	p.item = 1
	tasks := core.Must(scheduledtasks.New([]scheduledtasks.Definition{
		{Name: "cleanup", Cron: "@hourly", Signal: "cleanup.due", Description: "removes what nobody asked for in a month"},
		{Name: "nightly report", Cron: "0 3 * * *", Signal: "report.due"},
	}, scheduledtasks.TargetFunc(func(_ context.Context, task scheduledtasks.Task) error {
		p.sink.Raise(task.Signal)
		return nil
	}), scheduledtasks.Options{}))
	t.Cleanup(func() { tasks.Close() })
	tasks.Pause("nightly report")
	p.queue, p.plans = invoices.Inspect(), tasks
	return p
}

// newProgram starts a program whose names come from name. A durable queue or a scheduler
// does not accept all of these, so those two are fakes.
func newProgram(t testing.TB, name func(string) string) *program {
	p := &program{t: t, sink: signals.NewSink(signals.SinkOptions{}), name: name}
	p.orders = core.Must(core.NewKeyedCoordinator(
		func(o order) string { return o.customer }, p.ship,
		core.Options{
			Name: name("orders"), Sink: p.sink, MaxConcurrency: 6, CancelOn: name("shop.closed"),
			Lanes:   []core.Lane{{Name: name("hot"), Limit: 3}, {Name: name("normal")}, {Name: name("slow"), Limit: 1, DeferOn: name("db.down")}},
			Classes: []core.Class{{Name: name("heavy"), Limit: 2, Rate: core.PerMinute(600)}},
		}))
	quick := func(title, signal string, limit int) *core.Coordinator[time.Duration] {
		return core.Must(core.NewCoordinator(func(ctx context.Context, d time.Duration) error {
			core.OperationFrom(ctx).RaiseKey(name(signal), name("picture"))
			return sleep(ctx, d)
		}, core.Options{Name: name(title), Sink: p.sink, MaxConcurrency: limit}))
	}
	p.uploads, p.mails = quick("uploads", "upload.saved", 8), quick("mails", "mail.sent", 2)
	t.Cleanup(func() { p.orders.Close(); p.uploads.Close(); p.mails.Close() })
	p.queue = &fakeQueue{name: name("invoices"), ready: 12, dead: []inspect.StoredItem{
		{ID: 7, Key: name("ada"), Lane: name("normal"), State: "dead", Attempts: 5, Ended: time.Now(), Err: name("smtp: 550 no such mailbox")},
		{ID: 9, Key: name("bob"), State: "dead", Attempts: 5, Ended: time.Now(), Err: name("smtp: connection refused")},
	}}
	p.item = 7
	p.plans = &fakeSchedules{name: name("tasks"), list: []inspect.ScheduleStatus{
		{Name: name("cleanup"), When: name("@hourly"), Last: time.Now(), Next: time.Now().Add(time.Hour)},
		{Name: name("nightly report"), When: name("0 3 * * *"), Next: time.Now().Add(9 * time.Hour), Paused: true},
	}}
	return p
}

func (p *program) ship(ctx context.Context, o order) error {
	op := core.OperationFrom(ctx)
	op.Raise(p.name("order.started"))
	op.Set(p.name("attempt"), 1)
	if o.steps > 0 {
		r := core.Must(progress.New(op, p.name("pack"), o.steps, progress.Options{}))
		r.Add(1)
	}
	if o.child != nil {
		if _, err := p.orders.Enqueue(ctx, *o.child); err != nil {
			return err
		}
	}
	if o.asks != "" {
		defer op.WaitsFor(o.asks, time.Time{})()
	}
	select {
	case err := <-o.end:
		op.Raise(p.name("order.shipped"))
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enqueue puts orders into a lane.
func (p *program) enqueue(lane string, list ...order) (last core.OperationID) {
	p.t.Helper()
	for _, o := range list {
		o.customer = p.name(o.customer)
		id, err := p.orders.Lane(p.name(lane)).Enqueue(p.t.Context(), o)
		if err != nil {
			p.t.Fatal(err)
		}
		last = id
	}
	return last
}

// fill makes something to see in every view: orders that run, wait, suspend and have ended.
// It returns an order that runs, and the one of the same customer that waits for it.
func (p *program) fill() (runs, waits core.OperationID) {
	p.t.Helper()
	failed := newOrder("eve")
	failed.end <- errors.New(p.name("payment: card declined"))
	p.end(p.enqueue("normal", failed))
	done := newOrder("bob")
	done.end <- nil
	p.end(p.enqueue("hot", done))
	packed, child := newOrder("ada"), newOrder("cyd")
	packed.steps, packed.child, packed.asks = 4, &child, p.name("the courier")
	runs = p.enqueue("hot", packed)
	waits = p.enqueue("normal", newOrder("ada"))
	p.sink.Hold(p.name("db.down"), p.name("replica-2"), 0)
	p.enqueue("slow", newOrder("dan"), newOrder("dan"))
	heavy := p.orders.Lane(p.name("normal")).Class(p.name("heavy"))
	if _, err := heavy.Enqueue(p.t.Context(), newOrder(p.name("fay"))); err != nil {
		p.t.Fatal(err)
	}
	p.sink.RaiseKey(p.name("cache.warmed"), p.name("prices"))
	return runs, waits
}

// end waits until an order has ended.
func (p *program) end(id core.OperationID) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.orders.Wait(ctx, id); ctx.Err() != nil {
		p.t.Fatal(err)
	}
}

// work runs a changing number of orders, uploads and mails until ctx ends.
func (p *program) work(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		p.uploads.Enqueue(ctx, 30*time.Millisecond)
		if i%5 == 0 {
			p.mails.TryEnqueue(ctx, 130*time.Millisecond)
		}
		if i%7 == 0 {
			done := newOrder(fmt.Sprintf("customer-%d", i%50))
			done.end <- nil
			p.orders.TryEnqueue(ctx, done)
		}
		wave := (i / 200) % 6
		sleep(ctx, time.Duration(8+6*min(wave, 6-wave))*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// page returns the page of a program.
func (p *program) page() *statuspage.Page {
	page, err := statuspage.New(statuspage.Options{
		Title:        p.name("shop"),
		Sinks:        map[string]*signals.Sink{p.name("main"): p.sink},
		Coordinators: []core.Inspector{p.orders, p.uploads, p.mails},
		Queues:       []inspect.StoredQueue{p.queue},
		Schedules:    []inspect.Schedules{p.plans},
		View:         statuspage.Loopback,
		Allow:        func(*http.Request, statuspage.Action) bool { return true },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return page
}

// A site serves pages of programs, each below its own prefix. It can start again at the
// same address.
type site struct {
	t        testing.TB
	programs map[string]*program // by prefix
	address  string

	mu     sync.Mutex
	server *http.Server
	pages  []*statuspage.Page
}

func newSite(t testing.TB, programs map[string]*program) *site {
	s := &site{t: t, programs: programs, address: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *site) start() {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	mux := http.NewServeMux()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = nil
	for prefix, program := range s.programs {
		page := program.page()
		s.pages = append(s.pages, page)
		mux.Handle(prefix+"/", http.StripPrefix(prefix, page))
	}
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(listener)
}

// stop ends the streams and shuts the server down. All requests have ended then.
func (s *site) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, page := range s.pages {
		page.Close()
	}
	if err := s.server.Shutdown(context.Background()); err != nil {
		s.t.Error(err)
	}
}

func (s *site) url(prefix, view string) string {
	return fmt.Sprintf("http://%s%s/%s", s.address, prefix, view)
}
