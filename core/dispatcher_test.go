package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func dispatcher(_ testing.TB, opts core.Options) *core.Dispatcher {
	return core.Must(core.NewDispatcher(opts))
}

// noted is a handler that notes the names of its signals.
func (j *journal) noted(prefix string) core.Handler {
	return func(_ context.Context, s signals.Signal) error {
		j.note(prefix + s.Name)
		return nil
	}
}

func named(name string) signals.Signal { return signals.Signal{Name: name} }

// flushed waits until all that was dispatched or processed is handled.
func flushed(t testing.TB, l core.Lifecycle) {
	t.Helper()
	checkError(t, "Flush", l.Flush(context.Background()), nil)
}

// The handlers that match when the turn of a signal comes are called in the order of registration. A signal that no
// handler matches is not queued.
func TestDispatcherCallsHandlersThatMatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		d := dispatcher(t, core.Options{MaxConcurrency: 1, MaxQueued: 1})
		defer d.Close()
		early := d.Handle("*", j.noted("early "))
		d.Handle("error.*, timeout", j.noted("first "))
		d.Handle("error.db", j.noted("second "))
		d.Handle("", j.noted("never "))
		d.Handle("error.?b", j.noted("third "))
		d.Dispatch(named("timeout"))
		flushed(t, d)
		j.check(t, "early timeout", "first timeout")
		d.Pause()
		d.Dispatch(named("error.db"))
		early()
		d.Dispatch(named("Timeout"))
		d.Handle("error.db", j.noted("late "))
		d.Resume()
		flushed(t, d)
		j.check(t, "first error.db", "second error.db", "third error.db", "late error.db")
		s := d.Stats()
		checkEqual(t, "Enqueued, Dropped, Rejected", words(s.Enqueued, s.Dropped, s.Rejected), "2 0 0")
		wantPanic(t, "core: Handle needs a function", func() { d.Handle("a", nil) })
	})
}

func TestDispatchOfUnhandledSignalAllocatesNothing(t *testing.T) {
	skipRace(t)
	d := dispatcher(t, core.Options{})
	defer d.Close()
	for i := range 20 {
		d.Handle(fmt.Sprintf("other.%d.*, another", i), func(context.Context, signals.Signal) error { return nil })
	}
	s := named("cache.hit")
	wantAllocs(t, "Dispatch", 0, func() { d.Dispatch(s) })
}

// Signals of different names are handled side by side. Of one name, at most MaxPerKey signals are
// handled at once.
func TestDispatcherRunsNamesSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		let := make(chan struct{})
		d := dispatcher(t, core.Options{MaxConcurrency: 8, MaxPerKey: 2})
		defer d.Close()
		d.Handle("*", func(_ context.Context, s signals.Signal) error {
			j.note(s.Name + s.Key)
			<-let
			return nil
		})
		for _, key := range []string{"1", "2", "3"} {
			for _, name := range []string{"a", "b"} {
				d.Dispatch(signals.Signal{Name: name, Key: key})
			}
		}
		for _, want := range [][]string{{"a1", "a2", "b1", "b2"}, {"a3", "b3"}} {
			synctest.Wait()
			slices.Sort(j.entries)
			j.check(t, want...)
			for range want {
				let <- struct{}{}
			}
		}
		flushed(t, d)
	})
}

func TestReactorDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := dispatcher(t, core.Options{})
		defer d.Close()
		d.Handle("*", ignoring)
		d.Pause()
		g := newGate()
		p := processor(t, func(ctx context.Context, _ signals.Signal) error { return g.body(ctx) }, core.Options{})
		defer p.Close()
		for range 1024 + 1 {
			d.Dispatch(named("a"))
			p.Process(named("a"))
			synctest.Wait()
		}
		for name, c := range map[string]core.Inspector{"dispatcher 0 1024 1": d, "processor 4 1000 21": p} {
			s := c.Stats()
			checkEqual(t, "name, Running, Pending, Dropped", words(c.Name(), s.Running, s.Pending, s.Dropped), name)
		}
		g.open()
	})
}

func TestDispatcherFailingHandlerStopsNoOtherAndIsVisible(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, core.SignalPanicked)
		d := dispatcher(t, core.Options{Sink: sink})
		defer d.Close()
		errTwo := errors.New("another failure")
		d.Handle("a", func(context.Context, signals.Signal) error { return errOnPurpose })
		d.Handle("a", j.noted("after a failure "))
		d.Handle("a", func(context.Context, signals.Signal) error { panic(errTwo) })
		d.Handle("a", j.noted("after a panic "))
		d.Handle("b", func(context.Context, signals.Signal) error { return errOnPurpose })
		d.Dispatch(named("a"))
		flushed(t, d)
		j.check(t, "after a failure a", "after a panic a")
		s := d.Stats()
		checkEqual(t, "Failed, Succeeded, Panics", words(s.Failed, s.Succeeded, s.Panics), "1 0 0")
		for op := range d.Operations(core.OperationQuery{Key: "a"}) {
			checkEqual(t, "status", op.Status, core.StatusFailed)
			checkError(t, "first error", op.Err, errOnPurpose)
			checkError(t, "second error", op.Err, errTwo)
			p, ok := errors.AsType[*core.PanicError](op.Err)
			coretest.Check(t, ok, "got %v, want a PanicError", op.Err)
			checkSays(t, "stack", string(p.Stack), "TestDispatcherFailingHandler")
		}
		found := facts.ExpectExactly(core.SignalPanicked)
		checkSlice(t, "causes of the panic", found[0].Path(), []string{"a", core.SignalPanicked})

		d.Dispatch(named("b"))
		flushed(t, d)
		for op := range d.Operations(core.OperationQuery{Key: "b"}) {
			checkEqual(t, "a single error", op.Err, errOnPurpose)
		}
	})
}

func TestDispatcherHandlerEndingItsGoroutineHindersNoOtherSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		d := dispatcher(t, core.Options{MaxConcurrency: 1})
		defer d.Close()
		remove := d.Handle("*", func(_ context.Context, s signals.Signal) error {
			if s.Name == "a" {
				runtime.Goexit()
			}
			return nil
		})
		d.Handle("*", j.noted(""))
		d.Dispatch(named("a"))
		d.Dispatch(named("b"))
		flushed(t, d)
		j.check(t, "b")
		remove() // does not wait for a call that has ended its goroutine
		s := d.Stats()
		checkEqual(t, "Failed, Succeeded", words(s.Failed, s.Succeeded), "1 1")
	})
}

func TestDispatcherHandlersGetTheContextOfTheirOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		d := dispatcher(t, core.Options{Name: "alerts", Sink: sink})
		d.Handle("error.*", func(ctx context.Context, s signals.Signal) error {
			op := core.OperationFrom(ctx)
			checkEqual(t, "operation's key", op.Key(), "error.db")
			op.Set("about", s.Key)
			op.Raise("alert.sent")
			<-ctx.Done()
			return context.Cause(ctx)
		})
		second := 0
		d.Handle("error.*", func(context.Context, signals.Signal) error { second++; return nil })
		d.Dispatch(signals.Signal{Name: "error.db", Key: "orders"})
		synctest.Wait()
		for op := range d.Operations(core.OperationQuery{Status: core.StatusRunning}) {
			about, _ := core.Value[string](op, "about")
			checkEqual(t, "about, Key", words(about, op.Key), "orders error.db")
		}
		for s := range sink.Sense(signals.Query{Pattern: "alert.*"}) {
			checkEqual(t, "source", s.Source, "alerts")
			checkEqual(t, "key", s.Key, "error.db")
		}
		checkError(t, "Close", d.Close(), nil)
		s := d.Stats()
		checkEqual(t, "Cancelled, second", words(s.Cancelled, second), "1 0")
	})
}

func TestDispatcherHandlerCanBeRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := dispatcher(t, core.Options{})
		defer d.Close()
		let := make(chan struct{})
		calls := 0
		remove := d.Handle("a", func(context.Context, signals.Signal) error {
			calls++
			<-let
			return nil
		})
		d.Handle("*", func(context.Context, signals.Signal) error { return nil })
		d.Dispatch(named("a"))
		d.Dispatch(named("a"))
		synctest.Wait()
		var removed atomic.Bool
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { remove(); removed.Store(true) })
		}
		synctest.Wait()
		checkEqual(t, "removed while it runs", removed.Load(), false)
		close(let)
		all.Wait()
		checkEqual(t, "calls", calls, 1)
		d.Dispatch(named("a"))
		flushed(t, d)
		checkEqual(t, "calls after remove", calls, 1)
		checkEqual(t, "succeeded", d.Stats().Succeeded, 3)
	})
}

func TestDispatcherHandlerMayRemoveItselfAndOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		d := dispatcher(t, core.Options{})
		defer d.Close()
		var first, second func()
		first = d.Handle("*", func(ctx context.Context, s signals.Signal) error {
			j.note("first")
			core.OperationFrom(ctx).Raise("removing") // and from inside a delivery
			first()
			return nil
		})
		second = d.Handle("*", j.noted("second "))
		d.Sink().Subscribe("removing", func(signals.Signal) { second() })
		d.Handle("*", func(ctx context.Context, s signals.Signal) error {
			j.note("third")
			d.Handle(s.Name, j.noted("fourth "))
			return nil
		})
		d.Dispatch(named("a"))
		flushed(t, d)
		j.check(t, "first", "third")
		d.Dispatch(named("a"))
		flushed(t, d)
		j.check(t, "third", "fourth a")
	})
}

func TestDispatcherOnTheSinkItListensToDoesNotLoop(t *testing.T) {
	t.Run("with a window", func(t *testing.T) { dispatcherOnItsSink(t, core.Options{}) })
	t.Run("without", func(t *testing.T) { dispatcherOnItsSink(t, core.Options{MaxTracked: -1, EchoCapacity: -1}) })
}

func dispatcherOnItsSink(t *testing.T, opts core.Options) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := signals.NewSink(signals.SinkOptions{})
		watched := coretest.Watch(t, sink, "*, operation.*") // makes operations raise operation.started
		opts.Sink, opts.OnSignal = sink, func(signals.Signal) {}
		d := dispatcher(t, opts)
		defer d.Close()
		defer sink.Subscribe("*", d.Dispatch)()
		d.Handle("*", j.noted(""))
		d.Handle("*", func(ctx context.Context, s signals.Signal) error {
			core.OperationFrom(ctx).Raise("audited")
			core.OperationFrom(ctx).Because(s).Raise("audited.too")
			if s.Name == "b" {
				panic("on purpose")
			}
			return nil
		})
		sink.Raise("a")
		flushed(t, d)
		j.check(t, "a")
		watched.ExpectExactly("a", "audited", "audited.too")
		sink.Raise("b")
		flushed(t, d)
		j.check(t, "b")
		watched.ExpectExactly("b", "audited", "audited.too", core.SignalPanicked)

		// Operations of others are handled, also if their coordinator has the same name.
		c := bodies(t, core.Options{Name: d.Name(), Sink: sink})
		defer c.Close()
		checkError(t, "Do", c.Do(t.Context(), raise("c")), nil)
		flushed(t, d)
		slices.Sort(j.entries)
		j.check(t, "c", signals.SignalStarted, signals.SignalStopped)
	})
}

// Dispatchers and processors on one sink do not trigger each other without end, neither by lifecycle signals nor
// by panics.
func TestDispatchersAndProcessorsOnOneSinkDoNotLoop(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint("panics: ", panics), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sink := signals.NewSink(signals.SinkOptions{})
				var calls atomic.Int64
				h := func(context.Context, signals.Signal) error {
					if calls.Add(1) > 1000 {
						return nil
					}
					if panics {
						panic("on purpose")
					}
					return nil
				}
				var all []core.Lifecycle
				for range 2 {
					d := dispatcher(t, core.Options{Sink: sink})
					defer d.Close()
					defer sink.Subscribe("*", d.Dispatch)()
					d.Handle("*", h)
					p := processor(t, h, core.Options{Sink: sink})
					defer p.Close()
					defer sink.Subscribe("*", p.Process)()
					all = append(all, d, p)
				}
				sink.Raise("a")
				for range all {
					for _, l := range all {
						flushed(t, l)
					}
				}
				want := int64(4)
				if panics {
					want += 4 * 3 // each handler gets the panics of the others, and panics once more
				}
				checkEqual(t, "calls", calls.Load(), want)
			})
		})
	}
}

func TestSignalsThatHandlersRaiseOnPurposeAreDispatchedWithinPropagation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := signals.NewSink(signals.SinkOptions{})
		d := dispatcher(t, core.Options{Sink: sink})
		defer d.Close()
		defer sink.Subscribe("*", d.Dispatch)()
		answer := func(name string) core.Handler {
			return func(_ context.Context, s signals.Signal) error {
				j.note(s.Name)
				sink.Because(s).Raise(name)
				return nil
			}
		}
		d.Handle("ping", answer("pong"))
		d.Handle("pong", answer("ping"))
		sink.Raise("ping")
		for range 3 {
			flushed(t, d)
		}
		j.check(t, "ping", "pong")
		checkEqual(t, "blocked", sink.Stats().Blocked, 1)
	})
}

// What a handler raises through its operation has the signal as its cause by itself.
func TestDispatchersThatSetEachOtherOffEndAtThePropagationLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{AllowCycles: true}})
		for on, name := range map[string]string{"ping": "pong", "pong": "ping"} {
			d := dispatcher(t, core.Options{Sink: sink})
			defer d.Close()
			defer sink.Subscribe(on, d.Dispatch)()
			d.Handle(on, func(ctx context.Context, s signals.Signal) error {
				if calls.Add(1) < 100 {
					core.OperationFrom(ctx).Raise(name)
				}
				return nil
			})
		}
		sink.Raise("ping")
		synctest.Wait()
		checkEqual(t, "calls", calls.Load(), 11)
		checkEqual(t, "blocked", sink.Stats().Blocked, 1)
	})
}

// Signals refuse, defer and drain. What comes after the end is rejected.
func TestDispatcherIsGatedBySignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := signals.NewSink(signals.SinkOptions{})
		d := dispatcher(t, core.Options{Sink: sink, CancelOn: "stop", DeferOn: "wait", DrainOn: "drain"})
		defer d.Close()
		d.Handle("*", j.noted(""))
		release := sink.Hold("wait", "", 0)
		d.Dispatch(named("a"))
		synctest.Wait()
		j.check(t)
		release()
		flushed(t, d)
		j.check(t, "a")
		sink.Raise("stop")
		d.Dispatch(named("b"))
		sink.Retract("stop")
		d.Dispatch(named("c"))
		sink.Raise("drain")
		d.Dispatch(named("d"))
		checkError(t, "Drain", d.Drain(t.Context()), nil)
		d.Dispatch(named("e"))
		checkError(t, "Close", d.Close(), nil)
		d.Dispatch(named("f"))
		d.Handle("a", ignoring)()
		j.check(t, "c")
		checkEqual(t, "Rejected", d.Stats().Rejected, 4)
	})
}

func runCarried(bodies *sync.Map) core.Handler {
	return func(ctx context.Context, s signals.Signal) error {
		body, _ := bodies.LoadAndDelete(s.Key)
		return body.(coretest.Body)(ctx)
	}
}

// reactorSubject adapts a dispatcher or a processor for the lifecycle suite. The keys of the signals name the bodies.
// There are so many names of signals.
func reactorSubject(c core.Control, give func(signals.Signal), bodies *sync.Map, names uint64) coretest.Subject {
	var n atomic.Uint64
	return coretest.Subject{
		Lifecycle: c,
		Submit: func(_ context.Context, body coretest.Body) error {
			if c.Stats().Closed {
				return core.ErrClosed // Dispatch does not return this error
			}
			i := n.Add(1)
			key := strconv.FormatUint(i, 10)
			bodies.Store(key, body)
			give(signals.Signal{Name: fmt.Sprint("job.", i%names), Key: key})
			return nil
		},
		Pause:  c.Pause,
		Resume: c.Resume,
		Sink:   c.Sink(),
		Stats:  c.Stats,
	}
}

func TestReactorLifecycle(t *testing.T) {
	for _, test := range []struct {
		name  string
		opts  core.Options
		names uint64 // of signals for a dispatcher; 0: a processor
	}{
		{"dispatcher, one name", core.Options{}, 1},
		{"dispatcher, one at a time", core.Options{MaxConcurrency: 1}, 1 << 20},
		{"dispatcher, some of a name", core.Options{MaxPerKey: 3, MaxConcurrency: 4, MaxTracked: -1}, 1},
		{"dispatcher, many names", core.Options{MaxConcurrency: 4, MaxTracked: -1}, 1 << 20},
		{"processor", core.Options{}, 0},
		{"processor, one at a time", core.Options{MaxConcurrency: 1}, 0},
		{"processor, no window", core.Options{MaxTracked: -1, EchoCapacity: -1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				bodies := new(sync.Map)
				if test.names == 0 {
					p := processor(t, runCarried(bodies), test.opts)
					return reactorSubject(p.Control, p.Process, bodies, 1)
				}
				d := dispatcher(t, test.opts)
				d.Handle("job.*", runCarried(bodies))
				return reactorSubject(d.Control, d.Dispatch, bodies, test.names)
			})
		})
	}
}

func processor(_ testing.TB, h core.Handler, opts core.Options) *core.Processor {
	return core.Must(core.NewProcessor(h, opts))
}
