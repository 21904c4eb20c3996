package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Worlds of a few coordinators of random kinds with random features, whose bodies wait for their own coordinator
// and for others in every possible way, while limits, gates and pauses change. Everything comes to an end, and no
// wake-up is lost. When something hangs, the state of the engines is shown.
func TestStressWorlds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var counts worldCounts
	for seed := range uint64(Often(60, 25)) {
		random := rand.New(rand.NewPCG(seed, 31))
		runtime.GOMAXPROCS([]int{1, 2, 3, 8}[random.IntN(4)])
		features := feature(random.Uint32())
		if random.IntN(4) == 0 {
			features &= feature(random.Uint32())
		}
		w := newWorld(t, seed, features, &counts)
		w.live(random)
	}
	if counts.ended.Load() == 0 || counts.refused.Load() == 0 || counts.others.Load() == 0 {
		t.Errorf("%d waits ended, %d were refused and %d ended otherwise: want some of each", counts.ended.Load(), counts.refused.Load(), counts.others.Load())
	}
}

// feature is what goes on in a world.
type feature uint32

const (
	limits feature = 1 << iota
	cancels
	endings // of contexts
	gates
	pauses
	panics
	handlers
	loops // ForEach and Map
	parallel
	closes
	flushes
	tries
	futures
	dispatches
	suspends
)

type world struct {
	t        *testing.T
	seed     uint64
	features feature
	sinks    []*Sink
	stations []*station
	reactors []*engine
	counts   *worldCounts
	over     atomic.Bool

	mu     sync.Mutex
	latest []accepted
}

// worldCounts says how waits ended.
type worldCounts struct{ ended, refused, others atomic.Int64 }

// station is a coordinator of a world.
type station struct {
	*ResultCoordinator[worldItem, int]
	views []*ResultCoordinator[worldItem, int] // of the lanes, too
	place int                                  // among the stations: bodies wait for none before it
	keys  int

	futures []*Future[int] // guarded by world.mu
}

type worldItem struct {
	key  string
	body func(ctx context.Context) error
}

// accepted returns a check of what Enqueue has returned.
type accepted struct {
	at *station
	id OperationID
}

func oneOf[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

func fork(random *rand.Rand) *rand.Rand {
	return rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
}

func yield(random *rand.Rand, most int) {
	for range random.IntN(most) {
		runtime.Gosched()
	}
}

func (w *world) has(f feature) bool { return w.features&f != 0 }

func newWorld(t *testing.T, seed uint64, features feature, counts *worldCounts) *world {
	random := rand.New(rand.NewPCG(seed, 32))
	w := &world{t: t, seed: seed, features: features, counts: counts}
	w.sinks = []*Sink{NewSink(SinkOptions{Capacity: 64, MaxAge: -1}), NewSink(SinkOptions{Capacity: 64, MaxAge: time.Millisecond})}
	if random.IntN(2) == 0 {
		w.sinks[0].Forward(w.sinks[1], "*")
		w.sinks[1].Forward(w.sinks[0], "wait*, held")
	}
	if w.has(dispatches) {
		d := Must(NewDispatcher(Options{MaxQueued: 4, MaxConcurrency: 1 + random.IntN(3)}))
		p := Must(NewProcessor(func(context.Context, Signal) error { return nil }, Options{MaxQueued: 4}))
		d.Handle("*", func(context.Context, Signal) error { runtime.Gosched(); return nil })
		w.sinks[0].Subscribe("step, wait", d.Dispatch)
		w.sinks[0].Subscribe("step, wait", p.Process)
		w.reactors = []*engine{d.engine, p.engine}
	}
	for i := range 1 + random.IntN(6) {
		w.stations = append(w.stations, w.newStation(random, i))
	}
	if w.has(handlers) {
		for _, s := range w.sinks {
			handle := w.handler(random)
			s.Subscribe(oneOf(random, SignalStarted, SignalStopped, SignalPanicked, SignalForced, "step", "*"), func(Signal) { handle() })
			s.SubscribeRetracted("*", func(Retraction) { handle() })
		}
	}
	return w
}

func (w *world) newStation(random *rand.Rand, i int) *station {
	opts := Options{
		Name: fmt.Sprint("station ", i), Sink: oneOf(random, w.sinks...),
		MaxConcurrency: 1 + random.IntN(3), MaxQueued: oneOf(random, -1, 1, 2, 3), MaxSuspended: oneOf(random, -1, 1, 0), MaxTracked: oneOf(random, -1, 3, 20),
		DropOldest: random.IntN(4) == 0,
	}
	patience := func() time.Duration { return oneOf(random, -1, time.Microsecond, time.Millisecond) }
	if w.has(gates) {
		opts.CancelOn = oneOf(random, "", "", "", "stop")
		if random.IntN(2) == 0 {
			opts.DeferOn, opts.MaxDefer, opts.ResumeOn = "wait, held", patience(), oneOf(random, "", "resume")
		}
	}
	if random.IntN(2) == 0 {
		opts.Ageing = oneOf(random, -1, 0, time.Millisecond)
		for _, name := range []string{"hot", "normal", "slow"}[:2+random.IntN(2)] {
			l := Lane{Name: name, Limit: random.IntN(3), Depth: random.IntN(4) - 1}
			if w.has(gates) {
				l.CancelOn = oneOf(random, "", "", "", "stop")
				if random.IntN(3) == 0 {
					l.DeferOn, l.MaxDefer = "wait.lane", patience()
				}
			}
			opts.Lanes = append(opts.Lanes, l)
		}
	}
	p := &station{keys: 1 + random.IntN(4), place: i}
	work := func(ctx context.Context, i worldItem) (int, error) { return 1, i.body(ctx) }
	if random.IntN(2) == 0 {
		opts.MaxPerKey = 1 + random.IntN(2)
		p.ResultCoordinator = Must(NewKeyedResultCoordinator(func(i worldItem) string { return i.key }, work, opts))
	} else {
		p.ResultCoordinator = Must(NewResultCoordinator(work, opts))
	}
	p.views = append(p.views, p.ResultCoordinator)
	for _, l := range opts.Lanes {
		p.views = append(p.views, p.Lane(l.Name))
	}
	if w.has(handlers) && random.IntN(2) == 0 {
		handle := w.handler(random)
		p.OnFinalized(func(Snapshot) { handle() })
	}
	return p
}

// handler returns a handler that behaves badly at times.
func (w *world) handler(random *rand.Rand) func() {
	ends, enqueues := random.IntN(2) == 0, random.IntN(4) == 0
	return func() {
		switch n := rand.IntN(20); {
		case n == 0:
			panic("in a handler, on purpose")
		case n == 1 && ends && runningOn() != 0: // not a goroutine of the test
			runtime.Goexit()
		case n == 2:
			runtime.Gosched()
		case n == 3 && enqueues:
			w.stations[rand.IntN(len(w.stations))].TryEnqueue(context.Background(), worldItem{"x", func(context.Context) error { return nil }})
		}
	}
}

// live runs producers and calls from outside, and waits until everything has ended.
func (w *world) live(random *rand.Rand) {
	hangs := time.AfterFunc(15*time.Second, func() { panic(w.String()) }) // it takes milliseconds
	defer hangs.Stop()
	var god, producers sync.WaitGroup
	own := fork(random)
	god.Go(func() {
		for !w.over.Load() {
			w.interfere(own)
			runtime.Gosched()
		}
	})
	for range 2 + random.IntN(6) {
		own := fork(random)
		producers.Go(func() {
			for range 150 {
				w.produce(own)
			}
		})
	}
	producers.Wait()
	w.over.Store(true)
	god.Wait()
	for range 30 { // as one may enqueue with another
		for _, p := range w.stations {
			p.Flush(context.Background())
		}
	}
	for _, e := range w.reactors {
		Control{e}.Drain(context.Background())
	}
	for _, p := range w.stations {
		p.Drain(context.Background())
		p.Close()
		s := p.Stats()
		if s.Pending+s.Running+s.Suspended != 0 || p.lent != 0 || s.Enqueued != s.Succeeded+s.Failed+s.Cancelled+s.Refused+s.Dropped || p.scheduler.n != 0 {
			w.t.Errorf("world %d: got %v, want all accounted for", w.seed, s)
		}
	}
	ends.mu.Lock()
	if len(ends.waits) != 0 {
		w.t.Errorf("world %d: %d ends are still waited for", w.seed, len(ends.waits))
	}
	ends.mu.Unlock()
}

func (w *world) produce(random *rand.Rand) {
	p := oneOf(random, w.stations...)
	ctx, cancel := w.mortal(context.Background(), random)
	defer cancel()
	switch random.IntN(5) {
	case 0:
		id, _ := oneOf(random, p.views...).Enqueue(ctx, w.item(random, p, random.IntN(4)))
		w.note(p, id)
	case 1:
		p.Flush(ctx)
	default:
		oneOf(random, p.views...).Do(ctx, w.item(random, p, random.IntN(4)))
	}
}

// mortal returns a context that may end soon.
func (w *world) mortal(ctx context.Context, random *rand.Rand) (context.Context, context.CancelFunc) {
	if !w.has(endings) || random.IntN(6) > 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	own := fork(random)
	go func() {
		yield(own, 40)
		cancel()
	}()
	return ctx, cancel
}

// interfere makes one call from outside. Nothing stays held up by it.
func (w *world) interfere(random *rand.Rand) {
	p, s := oneOf(random, w.stations...), oneOf(random, w.sinks...)
	switch n := random.IntN(8); {
	case n < 2 && w.has(limits):
		p.SetMaxConcurrency(1 + random.IntN(4))
	case n == 2 && w.has(cancels):
		if a := w.some(random); a.at != nil {
			a.at.Cancel(a.id, nil)
		}
	case n == 3 && w.has(gates):
		lease := oneOf(random, 0, time.Microsecond, 100*time.Microsecond)
		release := s.Hold(oneOf(random, "wait", "wait.lane", "stop", "held"), "", lease)
		yield(random, 20)
		release()
	case n == 4 && w.has(gates):
		name := oneOf(random, "wait", "wait.lane", "stop")
		s.Raise(name)
		yield(random, 20)
		s.Raise(oneOf(random, "resume", "else"))
		for _, s := range w.sinks { // it may have been forwarded
			for s.Retract(name) > 0 {
			}
		}
	case n == 5 && w.has(pauses):
		p.Pause()
		yield(random, 20)
		p.Resume()
	case n == 6:
		p.Stats()
		for range p.Operations(OperationQuery{}) {
		}
		p.Explain(w.some(random).id)
	default:
		yield(random, 40)
	}
}

func (w *world) note(p *station, id OperationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latest) == 12 {
		w.latest = slices.Delete(w.latest, 0, 1)
	}
	w.latest = append(w.latest, accepted{p, id})
}

func (w *world) some(random *rand.Rand) accepted {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latest) == 0 {
		return accepted{}
	}
	return oneOf(random, w.latest...)
}

func (w *world) item(random *rand.Rand, p *station, depth int) worldItem {
	own := fork(random)
	return worldItem{strconv.Itoa(random.IntN(p.keys)), func(ctx context.Context) error { return w.body(ctx, own, depth, p.place) }}
}

func (w *world) body(ctx context.Context, random *rand.Rand, depth, from int) (err error) {
	o := OperationFrom(ctx)
	if w.has(parallel) && random.IntN(6) == 0 {
		var all sync.WaitGroup
		for range 2 + random.IntN(2) {
			own := fork(random)
			all.Go(func() { w.act(ctx, own, depth, from) })
		}
		all.Wait()
	}
	for range 1 + random.IntN(2) {
		err = w.act(ctx, random, depth, from)
	}
	if random.IntN(10) == 0 {
		o.Raise("step")
	}
	if w.has(gates) && random.IntN(20) == 0 {
		o.Hold("held", oneOf(random, 0, time.Microsecond, time.Millisecond))
	}
	if w.has(panics) {
		switch random.IntN(30) {
		case 0:
			panic("on purpose")
		case 1:
			runtime.Goexit()
		}
	}
	return err
}

// act waits in one way or another, for one of the stations from a place on, and counts
// how that ended.
func (w *world) act(ctx context.Context, random *rand.Rand, depth, from int) (err error) {
	if depth == 0 || from == len(w.stations) {
		yield(random, 4)
		return nil
	}
	ctx, cancel := w.mortal(ctx, random)
	defer cancel()
	defer OperationFrom(ctx).WaitsFor("something", time.Time{})()
	defer func() {
		switch {
		case err == nil:
			w.counts.ended.Add(1)
		case errors.Is(err, ErrWouldDeadlock):
			w.counts.refused.Add(1)
		default:
			w.counts.others.Add(1)
		}
	}()
	p := oneOf(random, w.stations[from:]...)
	view := oneOf(random, p.views...)
	switch n := random.IntN(16); {
	case n == 0 && w.has(flushes):
		return p.Flush(ctx)
	case n == 1 && w.has(futures):
		f, err := view.Submit(ctx, w.item(random, p, depth-1))
		if err == nil {
			w.note(p, f.ID())
			_, err = w.exchange(random, p, f).Wait(ctx)
		}
		return err
	case n == 2 || n == 3:
		if a := w.some(random); a.at != nil && a.at.place >= from {
			_, err = a.at.Wait(ctx, a.id)
		}
		return err
	case n == 11 && w.has(suspends):
		return OperationFrom(ctx).Suspend(ctx, "something", func(ctx context.Context) error {
			if w.has(panics) && runningOn() != 0 && random.IntN(20) == 0 { // not on a goroutine of the test
				panic("while suspended, on purpose")
			}
			return w.act(ctx, random, depth-1, from)
		})
	case n == 4 && w.has(tries):
		id, err := view.TryEnqueue(context.Background(), w.item(random, p, depth-1))
		w.note(p, id)
		return err
	case n < 7 && w.has(loops):
		return w.loop(ctx, random, depth, from)
	case n < 10:
		for range 1 + random.IntN(3) {
			id, err := view.Enqueue(ctx, w.item(random, p, depth-1))
			if err != nil {
				return err
			}
			w.note(p, id)
		}
		return nil
	case n == 10 && w.has(closes) && random.IntN(30) == 0 && runningOn() != 0: // Close has no context to know a body by
		switch random.IntN(3) {
		case 0:
			return p.Close()
		case 1:
			return p.Drain(ctx)
		}
		p.Complete()
		return nil
	}
	_, err = view.Do(ctx, w.item(random, p, depth-1))
	return err
}

// exchange puts a Future to some others and returns one of them.
func (w *world) exchange(random *rand.Rand, p *station, f *Future[int]) *Future[int] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p.futures) == 16 {
		p.futures = slices.Delete(p.futures, 0, 1)
	}
	p.futures = append(p.futures, f)
	return oneOf(random, p.futures...)
}

func (w *world) loop(ctx context.Context, random *rand.Rand, depth, from int) (err error) {
	opts := Options{MaxConcurrency: 1 + random.IntN(3), MaxQueued: 1 + random.IntN(2), StopOnError: random.IntN(2) == 0}
	var items []*rand.Rand
	for range 1 + random.IntN(4) {
		items = append(items, fork(random))
	}
	work := func(ctx context.Context, own *rand.Rand) error { return w.body(ctx, own, depth-1, from+1) } // the loop's operation keeps its slot
	switch random.IntN(3) {
	case 0:
		return ForEach(ctx, slices.Values(items), work, opts)
	case 1:
		n := 0
		key := func(*rand.Rand) string { n++; return strconv.Itoa(n % 2) }
		return ForEachKeyed(ctx, slices.Values(items), key, work, opts)
	}
	left := random.IntN(5)
	for _, err = range Map(ctx, slices.Values(items), func(ctx context.Context, own *rand.Rand) (int, error) { return 0, work(ctx, own) }, opts) {
		if left--; left < 0 {
			break
		}
		if random.IntN(4) == 0 {
			w.act(ctx, random, depth-1, from+1)
		}
	}
	return err
}

// String describes the state of the world.
func (w *world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "world %d hangs; features %b, GOMAXPROCS %d\n", w.seed, w.features, runtime.GOMAXPROCS(0))
	engines := slices.Clone(w.reactors)
	for _, p := range w.stations {
		engines = append(engines, p.engine)
	}
	for i, e := range engines {
		if slices.Contains(engines[:i], e) {
			continue
		}
		if !e.mu.TryLock() {
			fmt.Fprintf(&b, "%s is locked\n", e.name)
			continue
		}
		fmt.Fprintf(&b, "%s: limit %d, running %d, pending %d, arrived %d, fresh %v, token %d, paused %v, closing %v, deferring %v, waiting for room %d, suspended %d, resuming %d, lent %d, alarm %v\n",
			e.name, e.limit, e.running.n, e.scheduler.pending(), e.intake.arrived.n, e.intake.fresh.Load(), e.token.Load(), e.paused, e.closing, e.defers(0, 0), e.scheduler.waiting, e.suspended.n, e.scheduler.backs, e.lent, e.alarm.armed)
		for i, r := range e.intake.rooms {
			fmt.Fprintf(&b, "  room %d: accepted %d, left %d, known to have left %d, waiters %d\n", i, r.accepted, e.queues[i].left, r.left, e.queues[i].n)
		}
		for _, o := range append(e.started(), e.scheduler.all()...) {
			fmt.Fprintf(&b, "  operation %d, %v, lane %d, key %q\n", o.id, o.status, o.lane, o.key)
			if d := o.rest.Load(); d != nil {
				for _, n := range d.waits {
					fmt.Fprintf(&b, "    waits %q, %+v, gives %v\n", n.what, n.on, n.gives)
				}
			}
		}
		e.mu.Unlock()
	}
	return b.String()
}
