package signals_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// sinks makes n sinks.
func sinks(n int) []*signals.Sink {
	all := make([]*signals.Sink, n)
	for i := range all {
		all[i] = signals.NewSink(signals.SinkOptions{})
	}
	return all
}

func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		s.Raise("order.old")
		to.Raise("there.before")
		cancel := s.Forward(to, "order.*, file.saved")
		m := to.Monitor("order.*", 0)
		c := core.Must(core.NewCoordinator(func(ctx context.Context, key string) error {
			o := core.OperationFrom(ctx)
			o.SetKey(key)
			o.Because(newest(t, s, "cause")).Raise("order.placed")
			return nil
		}, core.Options{Name: "shop", Sink: s}))
		defer c.Close()

		s.Raise("cause")
		time.Sleep(time.Minute)
		checkError(t, "Do", c.Do(t.Context(), "k1"), nil)
		time.Sleep(time.Minute)
		fileSaved.Raise(s, "k2", file{"a.txt", 5})
		s.Raise("another")
		s.Restore(slices.Values([]signals.Signal{{Name: "order.restored", Time: time.Now()}})) // is not raised
		wantNames(t, "forwarded", sensed(to, signals.Query{}), "there.before", "order.placed", "file.saved")

		original, placed := newest(t, s, "order.placed"), newest(t, to, "order.placed")
		checkEqual(t, "placed", words(placed.Key, placed.Operation, placed.Operation != 0, placed.Source), words("k1", original.Operation, "true shop"))
		if got, want := placed.Path(), []string{"cause", "order.placed"}; !slices.Equal(got, want) {
			t.Errorf("path: got %q, want %q", got, want)
		}
		coretest.Check(t, placed.Time.Equal(time.Now().Add(-time.Minute)) && placed.Seq == 2, "got time %v, Seq %d, want those of the sink it came to", placed.Time, placed.Seq)
		if got := sensed(to, signals.Query{Operation: original.Operation, Source: "shop"}); len(got) != 1 {
			t.Errorf("of the operation: got %q", got)
		}
		saved := newest(t, to, "file.saved")
		if f, ok := fileSaved.From(saved); !ok || f.Path != "a.txt" || saved.Key != "k2" || saved.Operation != 0 {
			t.Errorf("got %+v with %v, %v", saved, f, ok)
		}
		coretest.Check(t, m.Count() == 1 && to.Stats().Raised == 3, "a monitor counts %d, Raised is %d, want 1, 3", m.Count(), to.Stats().Raised)

		cancel()
		cancel()
		s.Raise("order.late")
		coretest.Check(t, !to.Has("order.late"), "forwarded after cancel")
	})
}

// Handlers of the sink come first, whenever they subscribed; then the forwards, in
// order, with the handlers over there; all before Raise returns.
func TestForwardOrder(t *testing.T) {
	all := sinks(3)
	s := all[0]
	var got []string
	say := func(what string) func(signals.Signal) {
		return func(signals.Signal) { got = append(got, what) }
	}
	s.Forward(all[1], "a")
	s.Subscribe("a", say("here"))
	s.Forward(all[2], "*")
	all[2].Subscribe("*", say("second"))
	all[1].Subscribe("*", func(a signals.Signal) {
		got = append(got, fmt.Sprint("first ", s.Has("a"), all[1].Has("a"), all[2].Has("a")))
	})
	s.Raise("a")
	got = append(got, "raised")
	wantNames(t, "order", got, "here", "first true true false", "second", "raised")
}

// A signal that is raised while a forward is made comes before the forward or is forwarded, and so are all after
// it.
func TestForwardLosesNothingWhileBeingMade(t *testing.T) {
	const n = 2000
	s := signals.NewSink(signals.SinkOptions{Capacity: n})
	to := signals.NewSink(signals.SinkOptions{Capacity: n})
	var raising sync.WaitGroup
	raising.Go(func() {
		for i := range n {
			s.RaiseKey("a", fmt.Sprint(i))
		}
	})
	for s.Stats().Raised < n/4 {
		runtime.Gosched()
	}
	cancel := s.Forward(to, "a")
	for s.Stats().Raised < n/2 {
		runtime.Gosched()
	}
	cancel()
	forwarded := to.Stats().Raised
	raising.Wait()
	if got := to.Stats().Raised; got != forwarded {
		t.Errorf("%d forwarded after cancel had returned", got-forwarded)
	}
	first := slices.Collect(to.Sense(signals.Query{}))
	for i := 1; i < len(first); i++ {
		var before, key int
		fmt.Sscan(first[i-1].Key, &before)
		if fmt.Sscan(first[i].Key, &key); key != before+1 {
			t.Fatalf("after %d comes %d", before, key)
		}
	}
}

// A handler that panics does not keep a signal from being forwarded.
func TestForwardInSpiteOfPanics(t *testing.T) {
	all := sinks(4)
	for i, s := range all {
		s.Subscribe("*", func(signals.Signal) { panic("handler") })
		if i > 0 {
			all[i-1].Forward(s, "*")
		}
	}
	all[0].Forward(all[3], "*")
	coretest.Check(t, all[0].Raise("a"), "not raised")
	for i, s := range all {
		checkEqual(t, fmt.Sprintf("sink %d: signals and panics", i), words(s.Count("a"), s.Stats().Panics), "1 1")
	}
}

// A handler on the other sink that takes its time holds up nothing here, and leaves nothing held on a third sink.
func TestForwardRetractionBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		s, other, third := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		cancel := s.Forward(other, "*")
		s.Forward(third, "*")
		other.SubscribeRetracted("busy", func(signals.Retraction) { <-blocked })
		work := coordinator(t, func(context.Context, int) error { return nil }, core.Options{Sink: s, DeferOn: "busy.too", MaxDefer: -1})
		release := []func(){s.Hold("busy", "", 0)}
		holder := bodies(t, core.Options{Sink: s})
		end := newGate()
		enqueue(t, holder, func(ctx context.Context) error {
			core.OperationFrom(ctx).Hold("busy", 0)
			core.OperationFrom(ctx).Hold("busy.too", 0)
			return end.body(ctx)
		})
		synctest.Wait()
		deferred := enqueue(t, work, 1)
		go release[0]()
		end.open()
		synctest.Wait()
		took, err := gone(t, s, "busy*", time.Second)
		coretest.Check(t, err == nil && took == 0, "WaitGone: got %v after %v, want nil at once", err, took)
		checkStatus(t, work, deferred, core.StatusSucceeded)
		close(blocked)
		synctest.Wait()
		checkEqual(t, "held on the third", third.Stats().Held, 0)
		cancel()
	})
}

func TestForwardRefusesBadInput(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	for _, to := range []*signals.Sink{nil, s} {
		wantPanic(t, "signals: Forward", func() { s.Forward(to, "*") })
	}
	to := signals.NewSink(signals.SinkOptions{})
	cancel := s.Forward(to, "")
	s.Raise("a")
	cancel()
	checkEqual(t, "Stats().Raised", to.Stats().Raised, 0)
}

// The limits of the receiving sink apply. It counts the signals that it refuses, and does
// not forward them.
func TestForwardAppliesTheLimitsOfTheOther(t *testing.T) {
	tests := []struct {
		limits signals.Propagation
		want   string
	}{
		{signals.Propagation{MaxDepth: 1}, "a: chain too deep"},
		{signals.Propagation{}, "a: cycle"},
		{signals.Propagation{AllowCycles: true, Terminal: "b"}, "a: terminal cause"},
		{signals.Propagation{AllowCycles: true, Leaf: "b"}, "a: terminal cause"},
		{signals.Propagation{AllowCycles: true}, ""},
	}
	for _, tt := range tests {
		var b blocks
		tt.limits.OnBlocked = b.add
		s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{AllowCycles: true}})
		to, end := signals.NewSink(signals.SinkOptions{Propagation: tt.limits}), signals.NewSink(signals.SinkOptions{})
		s.Raise("a")
		s.Because(newest(t, s, "a")).Raise("b")
		s.Forward(to, "*")
		to.Forward(end, "*")
		coretest.Check(t, s.Because(newest(t, s, "b")).Raise("a"), "refused by the limits of another sink")
		if tt.want == "" {
			b.want(t, to)
		} else {
			b.want(t, to, tt.want)
		}
		if got := to.Has("a"); got != (tt.want == "") || end.Has("a") && !got || s.Stats().Blocked != 0 {
			t.Errorf("%+v: arrived %v, went on %v", tt.limits, got, end.Has("a"))
		}
	}
}

// Laws 3, 4 and 8: a copy is a fact of the sink it came to. What is retracted, or
// leaves, on one side changes nothing on the other.
func TestForwardedIsTheOthersOwn(t *testing.T) {
	s, to := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{Capacity: 5})
	s.Forward(to, "?, by.*")
	c := bodies(t, core.Options{Sink: s})
	defer c.Close()
	id := enqueue(t, c, raise("by.operation"))
	c.Flush(t.Context())
	s.Raise("a")
	s.Raise("b")
	retracted := 0
	s.SubscribeRetracted("*", func(signals.Retraction) { retracted++ })

	s.Retract("a")
	c.Evict(id)
	wantNames(t, "here", sensed(s, signals.Query{}), "b")
	wantNames(t, "there", sensed(to, signals.Query{}), "by.operation", "a", "b")
	if got := to.Retract("*"); got != 3 || !s.Has("b") || retracted != 1 {
		t.Errorf("got %d retracted there, %d here, b is here %v, want 3, 1, true", got, retracted, s.Has("b"))
	}
	for range 10 {
		s.Raise("c")
	}
	coretest.Check(t, s.Count("c") == 10 && to.Count("c") == 5, "got %d here, %d there, want 10, and the 5 that fit", s.Count("c"), to.Count("c"))
}

// A held fact is held on the other sink as well, through other sinks, whatever is retracted or forgotten there. Its
// release is reported there once. The end of its lease is not reported, but opens gates.
func TestForwardHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sinks(2)
		s, to, end := all[0], all[1], signals.NewSink(signals.SinkOptions{Capacity: 3, MaxAge: time.Second})
		s.Hold("update", "before", 0)
		cancel := s.Forward(to, "update")
		to.Forward(end, "*")
		var retracted []string
		end.SubscribeRetracted("*", func(r signals.Retraction) { retracted = append(retracted, fmt.Sprint(r.Signal.Key, r.Signal.Held)) })
		c, _ := gated(t, core.Options{Sink: end, DeferOn: "update", MaxDefer: -1})
		release := s.Hold("update", "released", 0)
		s.Hold("update", "leased", time.Minute)
		accepted(t)(c.Enqueue(t.Context(), 0))
		for range 100 {
			end.Raise("chatter")
		}
		checkEqual(t, "retracted or forgotten, of the chatter only", end.Retract("update")+end.Forget(signals.Query{Pattern: "*"}), 3)
		checkEqual(t, "held", end.Stats().Held, 2)
		release()
		release()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		checkEqual(t, "deferred before the lease ends", c.Stats().Pending, 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		checkEqual(t, "run after the lease", c.Stats().Succeeded, 1)
		late := s.Hold("update", "cancelled", time.Hour)
		cancel()
		checkEqual(t, "held there and here after cancel", words(end.Has("update"), s.Stats().Held), "false 2")
		late()
		wantNames(t, "retracted", retracted, "releasedtrue", "cancelledtrue")
	})
}

// A forwarded fact has the rest of the lease at that time.
func TestForwardHeldWithWhatIsLeftOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to, slow := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{}), 0*time.Second
		s.Subscribe("a", func(signals.Signal) { time.Sleep(slow) })
		s.Forward(to, "a")
		slow = time.Second
		s.Hold("a", "", 3*time.Second)
		time.Sleep(2*time.Second - 1)
		coretest.Check(t, to.Has("a"), "gone too early")
		time.Sleep(time.Nanosecond)
		checkEqual(t, "held after the lease", [2]bool{to.Has("a"), s.Has("a")}, [2]bool{})
		slow = time.Minute
		s.Hold("a", "", time.Second)
		checkEqual(t, "forwarded", to.Stats().Raised, 1)
	})
}

// What an operation holds is released with its end on all sinks, even if the signal is still on
// its way.
func TestForwardHeldByOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		s.Forward(to, "busy.*")
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			o := core.OperationFrom(ctx)
			o.Hold("busy.normally", 0)
			coretest.Check(t, to.Has("busy.normally"), "not forwarded")
			// Two that are still being delivered when the operation ends.
			go o.Hold("busy.here", 0)
			go o.Hold("busy.there", 0)
			synctest.Wait()
			return nil
		}, core.Options{Name: "worker", Sink: s}))
		defer c.Close()
		door := make(chan struct{})
		s.Subscribe("busy.here", func(signals.Signal) { <-door })
		to.Subscribe("busy.there", func(there signals.Signal) {
			checkEqual(t, "origin", words(there.Source, there.Operation != 0), "worker true")
			<-door
		})
		checkError(t, "Do", c.Do(t.Context(), 0), nil)
		synctest.Wait() // Do may return before the end has reached other sinks
		coretest.Check(t, !to.Has("*"), "still held: %q", sensed(to, signals.Query{}))
		close(door)
		synctest.Wait()
		checkEqual(t, "there, here and raised after the delivery", words(to.Has("*"), s.Has("*"), to.Stats().Raised), "false false 2")
	})
}

// After cancel has returned no forward is under way, unless cancel was called from
// inside of one.
func TestForwardCancelWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, to, other := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		door := make(chan struct{})
		cancel := s.Forward(to, "a")
		cancelOther := s.Forward(other, "a")
		to.Subscribe("a", func(signals.Signal) { <-door })
		go s.Raise("a")
		synctest.Wait()
		cancelOther() // does not wait for other deliveries
		cancelled := false
		go func() {
			cancel()
			cancelled = true
		}()
		synctest.Wait()
		coretest.Check(t, !cancelled, "cancel has not waited")
		close(door)
		synctest.Wait()
		coretest.Check(t, cancelled && to.Count("a") == 1 && other.Count("a") == 0, "cancelled %v, forwarded %d and %d, want true, 1, 0", cancelled, to.Count("a"), other.Count("a"))

		var inside func()
		to.Subscribe("b", func(signals.Signal) { inside(); inside() })
		inside = s.Forward(to, "b")
		s.Raise("b")
		s.Raise("b")
		checkEqual(t, `Count("b")`, to.Count("b"), 1)
	})
}

// Handlers may make and cancel forwards, and call everything else; no lock is held.
func TestForwardFromHandlers(t *testing.T) {
	all := sinks(3)
	s, to, third := all[0], all[1], all[2]
	s.Forward(to, "a")
	to.Subscribe("a", func(signals.Signal) {
		to.Forward(third, "b")
		cancel := s.Forward(third, "*")
		s.Raise("b")
		cancel()
		s.Raise("c")
		s.Resize(10, 0)
		to.Retract("a")
		to.Hold("h", "", 0)()
	})
	s.Raise("a")
	wantNames(t, "first", sensed(s, signals.Query{}), "a", "b", "c")
	wantNames(t, "second", sensed(to, signals.Query{}))
	wantNames(t, "third", sensed(third, signals.Query{}), "b")
}

// Everything at once, for the race detector; then nothing is held any more.
func TestForwardConcurrentSafe(t *testing.T) {
	all := sinks(4)
	var wg sync.WaitGroup
	const each = 200
	for i, s := range all {
		next := all[(i+1)%len(all)]
		defer s.Forward(next, "kept.*")()
		wg.Go(func() {
			for range each {
				s.Raise("kept.a")
				s.Hold("kept.b", "", time.Duration(i)*time.Microsecond)()
			}
		})
		wg.Go(func() {
			for n := range each {
				cancel := s.Forward(all[(i+2)%len(all)], "*")
				if n%2 == 0 {
					s.Hold("c", "", 0)()
				}
				runtime.Gosched()
				cancel()
			}
		})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
			o := core.OperationFrom(ctx)
			wg.Go(func() { o.Hold("kept.d", 0) }) // perhaps when it has ended
			o.Hold("kept.e", 0)
			return nil
		}, core.Options{Sink: s}))
		defer c.Close()
		for n := range each {
			accepted(t)(c.Enqueue(t.Context(), n))
		}
		wg.Go(func() { c.Flush(t.Context()) })
	}
	wg.Wait()
	for _, s := range all { // of two workers, one may end the flush while the other still releases copies
		checkError(t, "WaitGone", s.WaitGone(t.Context(), "kept.b, kept.d, kept.e, c"), nil)
	}
	for i, s := range all {
		if got := s.Stats(); got.Held != 0 || got.Blocked != 0 || got.Raised < uint64(len(all)*each) {
			t.Errorf("sink %d: got %+v, want nothing held", i, got)
		}
	}
}

// Signals that match no forward cost as much as without a forward. A sink to which signals
// were forwarded does not keep their origin alive.
func TestForwardCost(t *testing.T) {
	s, to := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	cancel := s.Forward(to, "order.*")
	if !coretest.Race {
		wantAllocs(t, "raise beside a forward", 0, func() { s.Raise("other") })
	}
	s.Raise("order.placed")
	release := s.Hold("order.held", "", 0)
	cancel()
	release()
	gone := make(chan struct{})
	runtime.AddCleanup(s, func(struct{}) { close(gone) }, struct{}{})
	s, release, cancel = nil, nil, nil
	for range 10 {
		runtime.GC()
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the sink is still reachable")
	}
	coretest.Check(t, to.Has("order.placed"), "the copy has gone with the original")
}

// Random forwards between a few sinks, and random calls on them, beside a simple model: lists of facts, walked
// depth first.
func TestForwardModel(t *testing.T) {
	for seed := range uint64(long.Often(500, 40)) {
		synctest.Test(t, func(t *testing.T) { newForwardModel(seed).run(t) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type forwardModel struct {
	rand  *rand.Rand
	sinks []*forwardingSink
	holds []*forwardedFact
	n     int
}

type forwardingSink struct {
	sink     *signals.Sink
	forwards []*modelForward
	facts    []*forwardedFact
	heard    []string
	want     []string // to be heard
}

type modelForward struct {
	to      *forwardingSink
	pattern string
	cancel  func()
}

type forwardedFact struct {
	name, key string
	held      bool
	until     time.Time
	by        *modelForward
	copies    []*forwardedFact
	gone      bool
	release   func()
}

func newForwardModel(seed uint64) *forwardModel {
	m := &forwardModel{rand: rand.New(rand.NewPCG(seed, 2))}
	for range 4 {
		s := &forwardingSink{sink: signals.NewSink(signals.SinkOptions{})}
		s.sink.Subscribe("*", func(a signals.Signal) { s.heard = append(s.heard, a.Name+a.Key) })
		m.sinks = append(m.sinks, s)
	}
	return m
}

func (m *forwardModel) run(t *testing.T) {
	names, patterns := []string{"a", "a.b", "c"}, []string{"a", "a*", "*", "c, a.b", "none"}
	for range 100 {
		s := m.sinks[m.rand.IntN(len(m.sinks))]
		f := &forwardedFact{name: names[m.rand.IntN(len(names))], key: fmt.Sprint(m.n)}
		m.n++
		switch n := m.rand.IntN(10); {
		case n < 3:
			s.sink.RaiseKey(f.name, f.key)
			s.arrive(f, map[*forwardingSink]bool{s: true})
		case n < 5:
			lease := []time.Duration{0, 0, time.Second, time.Minute}[m.rand.IntN(4)]
			if f.held = true; lease > 0 {
				f.until = time.Now().Add(lease)
			}
			f.release = s.sink.Hold(f.name, f.key, lease)
			m.holds = append(m.holds, f)
			s.arrive(f, map[*forwardingSink]bool{s: true})
		case n == 5 && len(m.holds) > 0:
			held := m.holds[m.rand.IntN(len(m.holds))]
			held.release()
			held.end(nil)
		case n == 6:
			to := m.sinks[m.rand.IntN(len(m.sinks))]
			if to == s {
				break
			}
			f := &modelForward{to: to, pattern: patterns[m.rand.IntN(len(patterns))]}
			f.cancel = s.sink.Forward(to.sink, f.pattern)
			s.forwards = append(s.forwards, f)
		case n == 7 && len(s.forwards) > 2:
			i := m.rand.IntN(len(s.forwards))
			f := s.forwards[i]
			f.cancel()
			s.forwards = slices.Delete(s.forwards, i, i+1)
			for _, held := range s.facts {
				for _, c := range held.copies {
					c.end(f)
				}
			}
		case n == 8:
			pattern := patterns[m.rand.IntN(len(patterns))]
			s.sink.Retract(pattern)
			for _, f := range s.facts {
				f.gone = f.gone || !f.held && signals.Match(pattern, f.name)
			}
		default:
			time.Sleep(time.Duration(m.rand.IntN(5)) * 300 * time.Millisecond)
		}
		for i, s := range m.sinks {
			s.compare(t, fmt.Sprintf("sink %d", i))
		}
	}
}

// arrive is a fact that s gets, and passes on.
func (s *forwardingSink) arrive(f *forwardedFact, been map[*forwardingSink]bool) {
	s.facts, s.want = append(s.facts, f), append(s.want, f.name+f.key)
	for _, way := range s.forwards {
		if signals.Match(way.pattern, f.name) && !been[way.to] {
			been[way.to] = true
			c := &forwardedFact{name: f.name, key: f.key, held: f.held, until: f.until, by: way}
			f.copies = append(f.copies, c)
			way.to.arrive(c, been)
		}
	}
}

// end ends a held fact and its forwarded copies.
func (f *forwardedFact) end(by *modelForward) {
	if !f.held || by != nil && f.by != by {
		return
	}
	f.gone = true
	for _, c := range f.copies {
		c.end(nil)
	}
}

func (s *forwardingSink) compare(t *testing.T, what string) {
	t.Helper()
	var got, want []string
	for a := range s.sink.Sense(signals.Query{}) {
		got = append(got, fmt.Sprint(a.Name, a.Key, a.Held))
	}
	held := 0
	for _, f := range s.facts {
		if !f.gone && (f.until.IsZero() || time.Now().Before(f.until)) {
			want = append(want, fmt.Sprint(f.name, f.key, f.held))
			if f.held {
				held++
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
	if !slices.Equal(s.heard, s.want) {
		t.Fatalf("%s: heard %q, want %q", what, s.heard, s.want)
	}
	if got := s.sink.Stats(); got.Held != held || got.Blocked != 0 || got.Panics != 0 {
		t.Fatalf("%s: got %+v, want %d held", what, got, held)
	}
}
