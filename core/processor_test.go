package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func processor(t testing.TB, h core.Handler, opts core.Options) *core.Processor {
	t.Helper()
	p, err := core.NewProcessor(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcessorStartsInOrderOfArrival(t *testing.T) {
	for _, limit := range []int{1, 3} {
		bubble(t, func(t *testing.T) {
			var j journal
			let := make(chan struct{})
			p := processor(t, func(_ context.Context, s core.Signal) error {
				j.note(s.Name)
				<-let
				return nil
			}, core.Options{MaxConcurrency: limit})
			defer p.Close()
			var want []string
			for i := range 10 {
				want = append(want, strconv.Itoa(i))
				p.Process(named(want[i]))
				synctest.Wait() // several that start at once may note it in any order
			}
			checkEqual(t, "running", p.Stats().Running, limit)
			for range 10 {
				let <- struct{}{}
				synctest.Wait()
			}
			flushed(t, p)
			j.check(t, want...)
		})
	}
}

func TestProcessorDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGate()
		p := processor(t, func(ctx context.Context, _ core.Signal) error { return g.body(ctx) }, core.Options{})
		defer p.Close()
		for range 4 + 1000 + 3 {
			p.Process(named("a"))
			synctest.Wait()
		}
		if s := p.Stats(); s.Running != 4 || s.Pending != 1000 || s.Dropped != 3 {
			t.Errorf("got %v, want 4 running, 1000 pending and 3 dropped", s)
		}
		checkEqual(t, "name", p.Name(), "processor")
		g.open()
	})
}

func TestProcessorDropsTheOldestNotTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		p := processor(t, j.noted(""), core.Options{MaxConcurrency: 1, MaxQueued: 2})
		defer p.Close()
		p.Pause()
		for _, name := range []string{"a", "b", "c", "d"} {
			p.Process(named(name))
		}
		p.Resume()
		flushed(t, p)
		j.check(t, "c", "d")
		checkEqual(t, "Dropped", p.Stats().Dropped, 2)
	})
}

// A processor of one at a time does what a slice that drops its head does.
func TestProcessorAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 21))
			limit := 1 + random.IntN(20)
			var j journal
			p := processor(t, j.noted(""), core.Options{MaxConcurrency: 1, MaxQueued: limit})
			defer p.Close()
			var dropped uint64
			for range 5 {
				p.Pause()
				var queue []string
				for i := range random.IntN(60) {
					name := strconv.Itoa(i)
					p.Process(named(name))
					if len(queue) == limit {
						queue = queue[1:]
						dropped++
					}
					queue = append(queue, name)
				}
				p.Resume()
				flushed(t, p)
				j.check(t, queue...)
				checkEqual(t, "Dropped", p.Stats().Dropped, dropped)
			}
		})
	}
}

func TestProcessorBoundIsExactWithManyProducers(t *testing.T) {
	const producers, each, limit = 4, 500, 16
	var handled atomic.Uint64
	p := processor(t, func(context.Context, core.Signal) error { handled.Add(1); return nil },
		core.Options{MaxConcurrency: 2, MaxQueued: limit})
	defer p.Close()
	var all sync.WaitGroup
	for range producers {
		all.Go(func() {
			for range each {
				p.Process(named("a"))
				if s := p.Stats(); s.Pending > limit || coretest.CheckBooks(s) != nil {
					t.Errorf("got %v, want at most %d pending and balanced books", s, limit)
				}
			}
		})
	}
	all.Wait()
	checkError(t, "Drain", p.Drain(t.Context()), nil)
	s := p.Stats()
	if s.Enqueued != producers*each || s.Succeeded+s.Dropped != s.Enqueued || handled.Load() != s.Succeeded {
		t.Errorf("got %v and %d handled, want all accounted for", s, handled.Load())
	}
}

func TestProcessorCountsFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, core.SignalPanic)
		p := processor(t, func(_ context.Context, s core.Signal) error {
			switch s.Name {
			case "fail":
				return errOnPurpose
			case "panic":
				panic("on purpose")
			}
			return nil
		}, core.Options{Sink: sink})
		defer p.Close()
		for _, name := range []string{"fail", "panic", "fine"} {
			p.Process(named(name))
		}
		flushed(t, p)
		if s := p.Stats(); s.Succeeded != 1 || s.Failed != 2 || s.Panics != 0 {
			t.Errorf("got %v, want 1 succeeded and 2 failed", s)
		}
		for op := range p.Operations(core.OperationQuery{Key: "fail"}) {
			checkEqual(t, "error", op.Err, errOnPurpose)
		}
		for op := range p.Operations(core.OperationQuery{Key: "panic"}) {
			if _, ok := errors.AsType[*core.PanicError](op.Err); !ok {
				t.Errorf("got error %v, want a PanicError", op.Err)
			}
		}
		found := signals.ExpectExactly(core.SignalPanic)
		checkSlice(t, "causes", found[0].Path(), []string{"panic", core.SignalPanic})
	})
}

func TestProcessorDrainHandlesWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		p := processor(t, j.noted(""), core.Options{MaxConcurrency: 1})
		p.Pause()
		for _, name := range []string{"a", "b", "c"} {
			p.Process(named(name))
		}
		p.Resume()
		checkError(t, "Drain", p.Drain(t.Context()), nil)
		j.check(t, "a", "b", "c")
		checkEqual(t, "Succeeded", p.Stats().Succeeded, 3)
	})
}

func TestProcessorCloseWaitsForHandlersAndCountsWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var running atomic.Int64
		let := make(chan struct{})
		p := processor(t, func(ctx context.Context, _ core.Signal) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			<-let // tidying up takes time
			return ctx.Err()
		}, core.Options{MaxConcurrency: 2})
		for range 5 {
			p.Process(named("a"))
		}
		synctest.Wait()
		var closed sync.WaitGroup
		closed.Go(func() {
			p.Close()
			checkEqual(t, "handlers when Close has returned", running.Load(), 0)
		})
		synctest.Wait()
		checkEqual(t, "handlers while Close waits", running.Load(), 2)
		p.Process(named("late"))
		close(let)
		closed.Wait()
		if s := p.Stats(); s.Enqueued != 5 || s.Cancelled != 5 || s.Rejected != 1 || s.Pending+s.Running != 0 {
			t.Errorf("got %v, want 5 cancelled and 1 rejected", s)
		}
	})
}

func TestProcessAfterTheEndIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := processor(t, func(context.Context, core.Signal) error { return nil }, core.Options{})
		p.Process(named("a"))
		p.Complete()
		p.Process(named("b"))
		checkError(t, "Drain", p.Drain(t.Context()), nil)
		p.Process(named("c"))
		p.Close()
		p.Process(named("d"))
		if s := p.Stats(); s.Succeeded != 1 || s.Enqueued != 1 || s.Rejected != 3 {
			t.Errorf("got %v, want 1 succeeded and 3 rejected", s)
		}
	})
}

// The bubble fails if a goroutine is left, although nothing is closed.
func TestProcessorOwnsNoGoroutineWhileIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		p := processor(t, j.noted(""), core.Options{})
		d := dispatcher(t, core.Options{})
		d.Handle("*", j.noted(""))
		for range 2 {
			p.Process(named("a"))
			flushed(t, p)
			d.Dispatch(named("b"))
			flushed(t, d)
			j.check(t, "a", "b")
		}
	})
}

func TestProcessorOnTheSinkItListensToDoesNotLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := core.NewSink(core.SinkOptions{})
		watched := coretest.Watch(t, sink, "*")
		p := processor(t, func(ctx context.Context, s core.Signal) error {
			j.note(s.Name)
			core.OperationFrom(ctx).Raise("audited")
			if s.Name == "a" {
				sink.Because(s).Raise("follow-up")
			}
			return nil
		}, core.Options{Sink: sink, MaxConcurrency: 1})
		defer p.Close()
		defer sink.Subscribe("*", p.Process)()
		sink.Raise("a")
		flushed(t, p)
		flushed(t, p)
		j.check(t, "a", "follow-up")
		watched.ExpectExactly("a", "audited", "follow-up", "audited")
	})
}

func TestNewProcessorRefusesWhatMakesNoSense(t *testing.T) {
	h := func(context.Context, core.Signal) error { return nil }
	if p, err := core.NewProcessor(nil, core.Options{}); err == nil || p != nil || !strings.Contains(err.Error(), "handler") {
		t.Errorf("got %v and error %v, want an error that a handler is missing", p, err)
	}
	for want, opts := range map[string]core.Options{
		"Options.Lanes are for coordinators": {Lanes: []core.Lane{{Name: "hot"}}},
		"Options.StopOnError":                {StopOnError: true},
		"Options.MaxPerKey is 2":             {MaxPerKey: 2},
		"Options.MaxConcurrency is -1":       {MaxConcurrency: -1},
		"Options.MaxQueued is -5":            {MaxQueued: -5},
	} {
		if p, err := core.NewProcessor(h, opts); err == nil || p != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v and error %v, want an error with %q", p, err, want)
		}
	}
}

func TestProcessorLifecycle(t *testing.T) {
	for name, opts := range map[string]core.Options{
		"zero options":  {},
		"one at a time": {MaxConcurrency: 1},
		"no window":     {MaxTracked: -1, EchoCapacity: -1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				bodies := new(sync.Map)
				p := processor(t, runCarried(bodies), opts)
				return reactorSubject{p, p.Process, p.Pause, p.Resume, p.Sink(), bodies}.subject(1)
			})
		})
	}
}
