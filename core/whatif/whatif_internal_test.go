package whatif

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// item is an item of a test: how long its body runs, and its key.
type item struct {
	span time.Duration
	key  string
}

// load enqueues the items of a test.
type load struct {
	*core.Coordinator[item]
	sink *signals.Sink
	*rand.Rand
}

// span is a duration around mean. Few of them end at the same time.
func (l load) span(mean time.Duration) time.Duration {
	return mean/2 + time.Duration(l.Int64N(int64(mean)))
}

// recording runs a load in a bubble, and returns its trace and the items in the order in which they started.
func recording(t *testing.T, o core.Options, keyed bool, work func(l load)) (trace *Trace) {
	synctest.Test(t, func(t *testing.T) {
		o.Sink = signals.NewSink(signals.SinkOptions{})
		body := func(ctx context.Context, i item) error {
			time.Sleep(i.span)
			return nil
		}
		var c *core.Coordinator[item]
		if !keyed {
			c = core.Must(core.NewCoordinator(body, o))
		} else {
			c = core.Must(core.NewKeyedCoordinator(func(i item) string { return i.key }, body, o))
		}
		var file bytes.Buffer
		r := core.Must(Record(c, &file))
		if _, err := Record(c, &file); err == nil {
			t.Error("a coordinator can be recorded twice at once")
		}
		work(load{c, o.Sink, rand.New(rand.NewPCG(1, 2))})
		c.Drain(t.Context())
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if n := r.Counts(); n.Dropped > 0 || r.Close() != nil {
			t.Errorf("got %+v, and %v from a second Close", n, r.Close())
		}
		trace = core.Must(Read(&file))
		if trace.Operations == 0 {
			t.Fatal("nothing was recorded")
		}
	})
	return trace
}

// loads are five kinds of load.
var loads = []struct {
	name  string
	opts  core.Options
	keyed bool
	work  func(l load)
}{
	{"steady", core.Options{MaxConcurrency: 8, Lanes: []core.Lane{{Name: "hot"}, {Name: "slow", Limit: 5}}}, false, func(l load) {
		for range 2000 {
			time.Sleep(l.span(1200 * time.Microsecond))
			lane := "slow"
			if l.IntN(3) == 0 {
				lane = "hot"
			}
			l.Lane(lane).Enqueue(context.Background(), item{span: l.span(9 * time.Millisecond)})
		}
	}},
	{"bursts", core.Options{MaxConcurrency: 4, MaxQueued: 20, Lanes: []core.Lane{{Name: "hot"}, {Name: "slow"}}, Ageing: 50 * time.Millisecond}, false, func(l load) {
		for i := range 40 {
			for range 50 {
				time.Sleep(time.Duration(1 + l.IntN(1000)))
				view := l.Lane([]string{"hot", "slow"}[l.IntN(2)])
				if i%2 == 0 {
					view.TryEnqueue(context.Background(), item{span: l.span(4 * time.Millisecond)})
				} else {
					view.Enqueue(context.Background(), item{span: l.span(4 * time.Millisecond)})
				}
			}
			time.Sleep(l.span(60 * time.Millisecond))
		}
	}},
	{"hot key", core.Options{MaxConcurrency: 6}, true, func(l load) {
		for range 2000 {
			time.Sleep(l.span(2 * time.Millisecond))
			key := "hot"
			if l.IntN(3) > 0 {
				key = fmt.Sprint(l.IntN(50))
			}
			l.Enqueue(context.Background(), item{l.span(6 * time.Millisecond), key})
		}
	}},
	{"rates", core.Options{MaxConcurrency: 10, Classes: []core.Class{
		{Name: "calls", Rate: core.Rate{PerSecond: 100, Burst: 5}}, {Name: "bytes", CostRate: core.Rate{PerSecond: 1000, Burst: 100}, Limit: 3},
	}}, false, func(l load) {
		for range 1500 {
			time.Sleep(l.span(5 * time.Millisecond))
			view := l.Coordinator
			switch l.IntN(3) {
			case 0:
				view = view.Class("calls")
			case 1:
				view = view.Class("bytes").Cost(l.IntN(25))
			}
			view.Enqueue(context.Background(), item{span: l.span(12 * time.Millisecond)})
		}
	}},
	{"gates", core.Options{MaxConcurrency: 5, DeferOn: "wait", MaxDefer: 100 * time.Millisecond, Classes: []core.Class{
		{Name: "shop", CancelOn: "closed", TrialOn: "half", Limit: 4},
	}, Lanes: []core.Lane{{Name: "hot"}, {Name: "slow", DeferOn: "slow.wait"}}}, false, func(l load) {
		for i := range 1500 {
			time.Sleep(l.span(3 * time.Millisecond))
			switch i % 100 {
			case 10:
				l.sink.Hold("wait", "", 70*time.Millisecond)
			case 40:
				l.sink.Hold("closed", "", 30*time.Millisecond)
			case 55:
				l.sink.Raise("slow.wait")
			case 80:
				l.sink.Hold("half", "", 50*time.Millisecond)
			case 95:
				l.sink.Retract("slow.wait")
			}
			view := l.Lane([]string{"hot", "slow"}[l.IntN(2)])
			if l.IntN(2) == 0 {
				view = view.Class("shop")
			}
			view.Enqueue(context.Background(), item{span: l.span(6 * time.Millisecond)})
		}
	}},
}

// A simulation with the recorded options agrees with what happened: the waits within 10 % or 2 ms, and how
// many of each lane and class had started at 20 instants.
func TestTruth(t *testing.T) {
	for _, x := range loads {
		t.Run(x.name, func(t *testing.T) {
			trace := recording(t, x.opts, x.keyed, x.work)
			s, err := newSimulation(trace, trace.Options)
			if err != nil {
				t.Fatal(err)
			}
			s.run()
			was, is := trace.recorded(), s.result()
			for i, w := range was.Waits {
				for _, q := range [][2]time.Duration{{w.P50, is.Waits[i].P50}, {w.P99, is.Waits[i].P99}} {
					if off := (q[0] - q[1]).Abs(); off > 2*time.Millisecond && off > q[0]/10 {
						t.Errorf("%s%s: recorded %+v, simulated %+v", w.Lane, w.Class, w, is.Waits[i])
						break
					}
				}
				if off := w.Refused - is.Waits[i].Refused; max(off, -off) > 2+w.Refused/20 {
					t.Errorf("%s%s: %d were refused, simulated %d", w.Lane, w.Class, w.Refused, is.Waits[i].Refused)
				}
			}
			for n := range 20 {
				at := int64(trace.Span) * int64(n+1) / 20
				var wasStarted, isStarted [64]int // by lane and class
				for i := range s.operations {
					o := &s.operations[i]
					if e := o.event; e.Started && e.At+e.Wait <= at {
						wasStarted[e.Lane*8+e.Class]++
					}
					if o.started > 0 && o.started-s.shift <= at {
						isStarted[o.Lane*8+o.Class]++
					}
				}
				for i, was := range wasStarted {
					if off := was - isStarted[i]; max(off, -off) > 2+was/50 {
						t.Errorf("at %v, %d of lane %d and class %d had started, simulated %d", time.Duration(at), was, i/8, i%8, isStarted[i])
					}
				}
			}
			if t.Failed() {
				report, _ := Run(trace, trace.Options)
				t.Log("\n" + report.String())
			}
		})
	}
}

// A million operations with keys, lanes and classes take at most 2 s on a quiet machine of 2026.
func TestMillion(t *testing.T) {
	if long.Often(1, 0) == 0 {
		t.Skip("it takes a second")
	}
	r := rand.New(rand.NewPCG(3, 4))
	trace := &Trace{keyed: true, Options: core.Options{MaxConcurrency: 16, Lanes: []core.Lane{{Name: "a"}, {Name: "b"}}, Classes: []core.Class{{Name: "c", Limit: 9}}}}
	at := int64(0)
	for i := range 1_000_000 {
		at += r.Int64N(2_000_000)
		trace.operations = append(trace.operations, tape.Event{Started: true, ID: uint64(i + 1), At: at, Run: r.Int64N(30_000_000), Lane: uint8(r.IntN(2)), Class: uint8(r.IntN(2)), Key: uint64(r.IntN(10_000))})
	}
	trace.Span = time.Duration(at)
	trace.settle()
	start := time.Now()
	report := core.Must(Run(trace, trace.Options))
	took := time.Since(start)
	t.Logf("%v\n%v", took, report)
	if n := report.Simulated.Waits[0].Started; n != 1_000_000 {
		t.Errorf("%d started, want all", n)
	}
	if limit := 10 * time.Second; !coretest.Race && took > limit { // other tests run beside it
		t.Errorf("took %v, want at most %v", took, limit)
	}
}

// order is the ids of the operations in the order in which they started.
func order(all []tape.Event, started func(i int) (at int64, ok bool)) (ids []uint64) {
	type start struct {
		at int64
		id uint64
	}
	var starts []start
	for i := range all {
		if at, ok := started(i); ok {
			starts = append(starts, start{at, all[i].ID})
		}
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	for _, s := range starts {
		ids = append(ids, s.id)
	}
	return ids
}

// Random programs with random lanes, keys, classes, rates, gates and full queues start their operations in the same
// order as in the simulation of their traces. No call looks into the coordinator meanwhile: see the package comment.
func TestPrograms(t *testing.T) {
	for seed := range uint64(long.Often(300, 30)) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(all ...int) int { return all[r.IntN(len(all))] }
		o := core.Options{MaxConcurrency: pick(1, 2, 4), DropOldest: r.IntN(4) == 0, MaxQueued: pick(-1, 0, 1, 3)}
		if r.IntN(2) == 0 {
			o.Lanes = []core.Lane{{Name: "hot", Limit: pick(0, 1)}, {Name: "slow", Depth: pick(0, 1, 2), Limit: pick(0, 1, 2), DeferOn: []string{"", "wait.lane"}[r.IntN(2)]}}
			o.Ageing = time.Duration(pick(0, 5, -1)) * time.Millisecond
		}
		if r.IntN(2) == 0 {
			o.Classes = []core.Class{{Name: "heavy", Limit: pick(0, 1, 2), Rate: core.Rate{PerSecond: 200, Burst: pick(1, 3)}, Depth: pick(0, 2)}, {Name: "light", CancelOn: []string{"", "stop"}[r.IntN(2)]}}
		}
		keyed := r.IntN(2) == 0
		if keyed {
			o.MaxPerKey = pick(1, 2)
		}
		if r.IntN(3) == 0 {
			o.DeferOn, o.MaxDefer = "wait", time.Duration(pick(-1, 7))*time.Millisecond
		}
		trace := recording(t, o, keyed, func(l load) {
			var pauses atomic.Int32
			for range 60 {
				time.Sleep(time.Duration(r.Int64N(2_000_000)))
				switch name := []string{"wait", "wait.lane", "stop"}[r.IntN(3)]; r.IntN(12) {
				case 0:
					l.sink.Raise(name)
				case 1:
					l.sink.Hold(name, "", time.Duration(1+r.Int64N(9_000_000)))
				case 2:
					l.sink.Retract(name)
				case 3:
					if pauses.Add(1) == 1 {
						l.Pause()
					}
					time.AfterFunc(time.Duration(r.Int64N(5_000_000)), func() {
						if pauses.Add(-1) == 0 { // a Resume that changes nothing is not recorded, but wakes the engine
							l.Resume()
						}
					})
				}
				synctest.Wait()
				view := l.Coordinator
				if len(o.Lanes) > 0 {
					view = view.Lane(o.Lanes[r.IntN(2)].Name)
				}
				if len(o.Classes) > 0 && r.IntN(3) > 0 {
					view = view.Class(o.Classes[r.IntN(2)].Name)
				}
				x := item{time.Duration(1 + r.Int64N(8_000_000)), []string{"x", "x", "y", ""}[r.IntN(4)]}
				if r.IntN(2) == 0 {
					view.TryEnqueue(context.Background(), x)
				} else {
					patience := []time.Duration{time.Duration(r.Int64N(9_000_000)), time.Hour}[r.IntN(2)]
					go func() {
						ctx, stop := context.WithTimeout(context.Background(), patience)
						defer stop()
						view.Enqueue(ctx, x)
					}()
				}
				synctest.Wait()
			}
			time.Sleep(time.Nanosecond)
			l.sink.Retract("*")
			time.Sleep(time.Minute)
			l.Resume()
		})
		s, err := newSimulation(trace, trace.Options)
		if err != nil {
			t.Fatal(err)
		}
		s.run()
		was := order(trace.operations, func(i int) (int64, bool) {
			e := &trace.operations[i]
			return e.At + e.Wait, e.Started
		})
		is := order(trace.operations, func(i int) (int64, bool) { return s.operations[i].started, s.operations[i].started > 0 })
		if !slices.Equal(was, is) {
			n := 0
			for n < min(len(was), len(is)) && was[n] == is[n] {
				n++
			}
			t.Errorf("seed %d: %d started, simulated %d; they differ from start %d on: %v, simulated %v\n%+v", seed, len(was), len(is), n, was[n:min(n+3, len(was))], is[n:min(n+3, len(is))], o)
		}
	}
}
