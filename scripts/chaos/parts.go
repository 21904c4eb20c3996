//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// parts is a world of one process. Requests run in a coordinator with retries, read through a cache, and add items to a
// durable queue of two nodes. Loads and items call a service behind a limiter and a breaker. Telemetry watches. The service
// and the store fail, the service hangs, nodes restart, limits change.
type parts struct {
	*cluster // for its faults and counts
	durable.Store
	trace.SpanProcessor // nil: nobody calls its other methods
	sink                *signals.Sink
	limiter             *ratelimit.Limiter
	breaker             *circuitbreaker.Breaker
	users               *slidingcache.Cache[string, string]
	tel                 *telemetry.Telemetry
	guarded             core.Work[string] // a call of the service
	edge                *core.Coordinator[job]
	orders              *durable.Queue[job] // does not run
	began               time.Time

	service, store                               atomic.Int32 // percent of calls that fail; above 100 the service hangs
	loaded, loading, running, refs, calls, spans atomic.Int64

	acked, effects sync.Map // by id of an item: its Ref, and the token of a claim in which it succeeded
}

const edgeLimit, hotLimit, loadLimit, clusterLimit, rate, openFor = 8, 4, 4, 5, 1000, 300 * time.Millisecond

func (p *parts) check(holds bool, format string, args ...any) {
	if !holds {
		p.fault(format, args...)
	}
}

// enter counts one more that runs until leave is called.
func (p *parts) enter(n *atomic.Int64, most int64, what string) (leave func()) {
	p.did(what)
	running := n.Add(1)
	p.check(running <= most, "%d %s run, want at most %d", running, what, most)
	return func() { n.Add(-1) }
}

func fails(mood int32, err error) error {
	if rand.Int32N(100) < mood {
		return err
	}
	return nil
}

// Insert, of the store, fails at times, before or after it has added the items.
func (p *parts) Insert(ctx context.Context, queue string, items []durable.Insert) ([]durable.Inserted, error) {
	if err := fails(p.store.Load(), errors.New("chaos: the store has failed")); err != nil {
		return nil, err
	}
	done, err := p.Store.Insert(ctx, queue, items)
	return done, errors.Join(err, fails(p.store.Load(), durable.ErrUndecided))
}

// These count spans.
func (p *parts) OnStart(context.Context, trace.ReadWriteSpan) { p.spans.Add(1) }
func (p *parts) OnEnd(trace.ReadOnlySpan)                     { p.spans.Add(-1) }

// runParts is the main function of this world.
func (o options) runParts() error {
	before := runtime.NumGoroutine()
	p := &parts{cluster: &cluster{options: o, rnd: rand.New(rand.NewPCG(o.seed, 1)), counts: map[string]int{}}, Store: durable.Memory(), sink: signals.NewSink(signals.SinkOptions{}), began: time.Now()}
	p.build()
	ctx, stop := context.WithCancel(context.Background())
	var requests, others sync.WaitGroup
	others.Go(func() { p.look(ctx) })
	for range 3 {
		requests.Go(p.request)
		requests.Go(p.request)
		others.Go(func() { p.node(ctx) })
	}
	for time.Since(p.began) < o.span && !p.faulty() {
		p.disturb()
		time.Sleep(time.Duration(p.rnd.IntN(int(100 * time.Millisecond))))
	}
	requests.Wait()
	p.finish()
	stop()
	others.Wait()
	p.judgeParts()
	for end := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if n := runtime.NumGoroutine(); n > before {
		p.fault("%d goroutines are left", n-before)
		pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
	}
	fmt.Printf("seed %d: %v\n", p.seed, p.counts)
	if p.faulty() {
		return fmt.Errorf("%d violations; seed %d:\n%q", len(p.faults), p.seed, p.faults[:min(5, len(p.faults))])
	}
	return nil
}

func (p *parts) build() {
	p.limiter = core.Must(ratelimit.New(core.Rate{PerSecond: rate}, ratelimit.Options{Sink: p.sink}))
	p.breaker = core.Must(circuitbreaker.New(p.sink, circuitbreaker.Options{Name: "api", Threshold: 5, Window: time.Second, HalfOpen: 2, OpenFor: openFor}))
	p.guarded = ratelimit.Wrap(p.limiter, circuitbreaker.Wrap(p.breaker, p.call))
	p.users = core.Must(slidingcache.New(p.load, slidingcache.Options[string]{Sink: p.sink, Capacity: 40, MaxConcurrency: loadLimit, Sliding: 100 * time.Millisecond,
		RefreshAfter: 50 * time.Millisecond, StaleOnError: 200 * time.Millisecond, InvalidateOn: "invalidate"}))
	p.tel = core.Must(telemetry.New(p.sink, telemetry.Options{TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(p))}))
	p.edge = core.Must(core.NewCoordinator(telemetry.Wrap(p.tel, retry.Wrap(
		core.Must(retry.New(retry.Options{Sink: p.sink, Attempts: 4, Backoff: retry.Exponential(5*time.Millisecond, 2), Jitter: retry.FullJitter, AttemptTimeout: 200 * time.Millisecond})), p.serve)), core.Options{Sink: p.sink, MaxConcurrency: edgeLimit, MaxQueued: 16,
		Lanes: []core.Lane{{Name: "hot", Limit: hotLimit}, {Name: "normal", DeferOn: "circuit.open.*", MaxDefer: 500 * time.Millisecond}}}))
	p.tel.ObserveCoordinator(p.edge)
	p.orders = p.queue()
}

func (p *parts) queue() *durable.Queue[job] {
	return core.Must(durable.New(p, func(j job) string { return j.Key }, telemetry.Wrap(p.tel, p.ship), durable.Options{Sink: p.sink, MaxConcurrency: 4, MaxCluster: clusterLimit,
		Lease: 3 * time.Second, Poll: 50 * time.Millisecond, MaxAttempts: 6, Backoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, DeferOn: "circuit.open.api"}))
}

// call calls the service.
func (p *parts) call(ctx context.Context, _ string) error {
	p.calls.Add(1)
	mood := p.service.Load()
	select {
	case <-time.After(time.Duration(rand.IntN(4)+1000*int(mood/101)) * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if mood > 0 && rand.IntN(100) == 0 {
		panic("chaos")
	}
	return fails(mood, errors.New("chaos: the service has failed"))
}

func (p *parts) load(ctx context.Context, key string) (string, error) {
	defer p.enter(&p.loading, loadLimit, "loads")()
	err := p.guarded(ctx, key)
	if err == nil {
		p.loaded.Add(1)
	}
	return "user " + key, err
}

// serve is the body of a request.
func (p *parts) serve(ctx context.Context, j job) error {
	defer p.enter(&p.running, edgeLimit, "requests")()
	user, err := p.users.Get(ctx, j.Key)
	if err != nil {
		return err
	}
	p.check(user == "user "+j.Key, "the cache has %q for %q", user, j.Key)
	id, err := p.orders.With(durable.ItemOptions{Unique: j.Ref}).Enqueue(ctx, j)
	if err == nil {
		p.did("acknowledged")
		p.acked.Store(id, j.Ref)
	}
	return err
}

// ship is the body of an item.
func (p *parts) ship(ctx context.Context, j job) error {
	err := p.guarded(ctx, j.Key)
	if c := durable.ClaimFrom(ctx); err == nil {
		p.effects.Store(c.ID, c.Token)
	}
	return err
}

// request makes requests until the end.
func (p *parts) request() {
	for time.Since(p.began) < p.span && !p.faulty() {
		j := job{Key: fmt.Sprint(rand.IntN(60)), Ref: fmt.Sprint(p.refs.Add(1))}
		view := p.edge.Lane([]string{"hot", "normal"}[rand.IntN(2)])
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(int(300*time.Millisecond))))
		if rand.IntN(2) == 0 {
			view.Do(ctx, j)
		}
		view.Enqueue(ctx, j) // at times it is the second request for the same item
		cancel()
	}
}

// node is a node of the queue, which restarts.
func (p *parts) node(ctx context.Context) {
	for ctx.Err() == nil {
		q := p.queue()
		time.AfterFunc(time.Duration(rand.IntN(int(4*time.Second))), func() { q.Close() })
		err := q.Run(ctx)
		p.check(err == nil || errors.Is(err, core.ErrClosed), "Run has returned %v", err)
		q.Close()
	}
}

// disturb does one of the things that this world is for.
func (p *parts) disturb() {
	switch p.rnd.IntN(4) {
	case 0, 1:
		p.service.Store([]int32{0, 0, 5, 40, 100, 101}[p.rnd.IntN(6)])
	case 2:
		p.store.Store([]int32{0, 0, 10, 50}[p.rnd.IntN(4)])
	default:
		p.limiter.SetRate([]float64{50, 300, rate}[p.rnd.IntN(3)])
		p.limiter.PauseFor(time.Duration(p.rnd.IntN(int(100 * time.Millisecond))))
		p.edge.SetMaxConcurrency(1 + p.rnd.IntN(edgeLimit))
		p.sink.RaiseKey("invalidate", fmt.Sprint(p.rnd.IntN(60)))
	}
}

// look checks all the time what must hold at every instant.
func (p *parts) look(ctx context.Context) {
	state, closed := breaker.Closed, p.began // when it was seen so
	for before, last := int64(0), int64(0); ctx.Err() == nil; time.Sleep(time.Duration(rand.IntN(int(10 * time.Millisecond)))) {
		s, l := p.edge.Stats(), p.limiter.Stats()
		p.check(s.Enqueued == uint64(s.Pending+s.Running+s.Suspended)+s.Succeeded+s.Failed+s.Cancelled+s.Refused+s.Dropped && s.Lanes[0].Running <= hotLimit, "the coordinator: %v", s)
		p.check(float64(l.Allowed) <= float64(l.Burst)+time.Since(p.began).Seconds()*rate, "the limiter has let too many pass: %v", l)
		o, _ := p.orders.Stats(ctx)
		p.check(o.Running <= clusterLimit && o.Items == o.Blocked+o.Ready+o.Delayed+o.Running+o.Retry+o.Halted+o.Done+o.Dead+o.Cancelled, "the queue: %v", o)
		calls, now, next := p.calls.Load(), time.Now(), p.breaker.State()
		if next != state {
			p.did(fmt.Sprint("breaker ", next))
			p.check(next == breaker.Closed || next == breaker.Open && p.calls.Load() > before || next == breaker.HalfOpen && time.Since(closed) >= openFor,
				"the breaker is %v %v after it was closed, %d calls after it was not yet %v", next, time.Since(closed), p.calls.Load()-before, state)
			state, before = next, last
		}
		last = calls
		if next == breaker.Closed {
			closed = now
		}
	}
}

// finish waits until everything has ended, without faults.
func (p *parts) finish() {
	p.service.Store(0)
	p.store.Store(0)
	p.limiter.SetRate(rate)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	p.check(p.edge.Drain(ctx) == nil, "the coordinator is not drained: %v", p.edge.Stats())
	for left := 1; left > 0 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		o, _ := p.orders.Stats(ctx)
		left = o.Items - o.Done - o.Dead - o.Cancelled
	}
	for p.breaker.State() != breaker.Closed && ctx.Err() == nil {
		circuitbreaker.Wrap(p.breaker, func(context.Context, int) error { return nil })(ctx, 1)
	}
	p.check(p.users.WaitIdle(ctx) == nil && p.users.Stop(ctx) == nil && !p.sink.Has("circuit.open.api"), "not all has ended without faults: the breaker is %v, the cache %v", p.breaker.State(), p.users.Stats())
}

// judgeParts checks what must hold when everything has ended: nothing acknowledged is lost, the items of a key ran in order,
// and all have counted the same.
func (p *parts) judgeParts() {
	newest, refs := map[string]int64{}, map[any]any{}
	for i, err := range p.orders.Items(context.Background(), durable.Query{}) {
		effect, _ := p.effects.Load(i.ID)
		p.check(err == nil && i.State&durable.Finished != 0 && (i.State != durable.Done || effect != nil), "item %d is %v, effect %v: %v", i.ID, i.State, effect, err)
		if token, ok := effect.(int64); ok {
			p.check(token > newest[i.Key], "item %d of key %s ran before an earlier one", i.ID, i.Key)
			newest[i.Key] = token
		}
		p.check(refs[i.Unique] == nil, "items %v and %d are both %s", refs[i.Unique], i.ID, i.Unique)
		refs[i.Unique] = i.ID
	}
	for id, ref := range p.acked.Range {
		p.check(refs[ref] == id, "%v was acknowledged as item %v, and is item %v", ref, id, refs[ref])
	}
	c := p.users.Stats()
	p.check(int(c.Hits+c.Absences+c.Misses) == p.counts["requests"], "%d calls of Get, but the cache says %v", p.counts["requests"], c)
	p.check(int64(c.Loads.Succeeded) == p.loaded.Load() && int(c.Loads.Enqueued) >= p.counts["loads"] && int(c.Loads.Succeeded+c.Loads.Failed) <= p.counts["loads"],
		"%d loads, of which %d succeeded, but the cache says %v", p.counts["loads"], p.loaded.Load(), c)
	p.check(errors.Join(p.edge.Close(), p.users.Close(), p.orders.Close(), p.limiter.Close(), p.breaker.Close(), p.tel.Close()) == nil && p.spans.Load() == 0, "Close fails, or some of %d spans have not ended", p.spans.Load())
}
