package waves_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/waves"
)

var errOnPurpose = errors.New("failed on purpose")

func quick(context.Context, core.Signal) error { return nil }

func fail(context.Context, core.Signal) error { return errOnPurpose }

func takes(d time.Duration) core.Work[core.Signal] {
	return func(ctx context.Context, _ core.Signal) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// start makes an executor and starts it.
func start(t testing.TB, sink *core.Sink, opts waves.Options, stages ...waves.Stage) *waves.Executor {
	t.Helper()
	e, err := waves.New(sink, stages, opts)
	if err != nil {
		t.Fatal(err)
	}
	e.Start()
	return e
}

func checkError(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

func checkEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// sense returns the one signal of that name.
func sense(t testing.TB, sink *core.Sink, name string) (found core.Signal) {
	t.Helper()
	checkEqual(t, "signals "+name, sink.Count(name), 1)
	for s := range sink.Sense(core.Query{Pattern: name}) {
		found = s
	}
	return found
}

func checkStats(t testing.TB, e *waves.Executor, want core.Stats) {
	t.Helper()
	got := e.Stats()
	if err := coretest.CheckBooks(got); err != nil {
		t.Error(err)
	}
	want.Tracked, want.Limit = got.Tracked, got.Limit
	if want.String() != got.String() {
		t.Errorf("counters\n got: %v\nwant: %v", got, want)
	}
}

// The suite submits bodies as payloads of the signals that set off a stage. One is
// accepted if Enqueued counts it; submits take turns, so that it is clear which.
func TestLifecycle(t *testing.T) {
	body := core.NewKind[coretest.Body]("coretest.body")
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		sink := core.NewSink(core.SinkOptions{})
		e := start(t, sink, waves.Options{}, waves.Stage{
			Trigger: "coretest.body",
			Work: func(ctx context.Context, s core.Signal) error {
				run, _ := body.From(s)
				return run(ctx)
			},
			OnStart: "coretest.started", OnComplete: "coretest.completed", OnFailure: "coretest.failed",
		})
		var turn sync.Mutex
		return coretest.Subject{
			Lifecycle: e,
			Submit: func(_ context.Context, b coretest.Body) error {
				turn.Lock()
				defer turn.Unlock()
				before := e.Stats().Enqueued
				body.Raise(sink, "", b)
				if e.Stats().Enqueued == before {
					return core.ErrClosed
				}
				return nil
			},
			Sink:  sink,
			Stats: e.Stats,
		}
	})
}

func TestEachTriggerQueuesOneRunOfEachMatchingStageInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		var ran []string
		note := func(stage string) core.Work[core.Signal] {
			return func(_ context.Context, s core.Signal) error {
				ran = append(ran, stage+":"+s.Name+":"+s.Key)
				return nil
			}
		}
		e := start(t, sink, waves.Options{MaxConcurrency: 1},
			waves.Stage{Name: "b", Trigger: "x.*", Work: note("b")},
			waves.Stage{Name: "a", Trigger: "y, x.1", Work: note("a")},
		)
		sink.RaiseKey("x.1", "k")
		sink.RaiseKey("x.2", "l")
		sink.RaiseKey("y", "m")
		sink.RaiseKey("z", "n")
		sink.RaiseKey("x.1", "k")
		checkError(t, e.Drain(t.Context()), nil)
		checkEqual(t, "runs", strings.Join(ran, " "), "b:x.1:k a:x.1:k b:x.2:l a:y:m b:x.1:k a:x.1:k")
	})
}

func TestWhatARunRaisesBearsKeyCauseAndEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "s.*,f.*,p.*,stage.*")
		e := start(t, sink, waves.Options{MaxConcurrency: 1},
			waves.Stage{Name: "succeeds", Trigger: "go", Work: quick, OnStart: "s.start", OnComplete: "s.done, s.vote", OnFailure: "s.failed"},
			waves.Stage{Name: "fails", Trigger: "go", Work: fail, OnStart: "f.start", OnComplete: "f.done", OnFailure: "f.failed"},
			waves.Stage{Name: "panics", Trigger: "go", Work: func(context.Context, core.Signal) error { panic("on purpose") }, OnFailure: "p.failed"},
		)
		sink.RaiseKey("go", "k")
		checkError(t, e.Drain(t.Context()), nil)
		raised := signals.ExpectExactly("s.start", "s.done", "s.vote", "f.start", "f.failed", waves.SignalFail, "p.failed", waves.SignalFail)
		for i, s := range raised {
			checkEqual(t, "key", s.Key, "k")
			checkEqual(t, "path", strings.Join(s.Path(), ">"), "go>"+s.Name)
			event, ok := s.Payload().(waves.Event)
			if !ok || event.Stage != strings.Split("succeeds succeeds succeeds fails fails fails panics panics", " ")[i] {
				t.Errorf("%s: got payload %v, want an Event that names the stage", s.Name, s.Payload())
			}
			if failed := i > 3; (event.Err != nil) != failed {
				t.Errorf("%s: got error %v", s.Name, event.Err)
			}
		}
		checkEqual(t, "error", raised[5].Payload().(waves.Event).Err, errOnPurpose)
		var got []string
		for op := range e.Operations(core.OperationQuery{}) {
			stage, _ := core.Value[string](op, waves.ValueStage)
			got = append(got, fmt.Sprint(stage, " ", op.Key, " ", op.Status))
		}
		checkEqual(t, "operations", strings.Join(got, ", "), "succeeds k succeeded, fails k failed, panics k failed")
		// Weak point: failures are counted as completed.
		checkStats(t, e, core.Stats{Enqueued: 3, Succeeded: 1, Failed: 2, Closed: true})
	})
}

// Weak point: the signals of its own coordinator set off stages with triggers like
// "*" or "atom.*", endlessly.
func TestStageTriggeredByEverythingDoesNotLoop(t *testing.T) {
	for name, work := range map[string]core.Work[core.Signal]{
		"quick":  quick,
		"fails":  fail,
		"panics": func(context.Context, core.Signal) error { panic("on purpose") },
		"raises through its operation": func(ctx context.Context, _ core.Signal) error {
			core.OperationFrom(ctx).Raise("noted")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				e := start(t, sink, waves.Options{},
					waves.Stage{Name: "all", Trigger: "*", Work: work, OnStart: "a.start", OnComplete: "a.done", OnFailure: "a.failed"},
					waves.Stage{Name: "atoms", Trigger: "atom.*, coordinator.*", Work: work},
				)
				sink.Raise("go")
				synctest.Wait()
				if s := e.Stats(); s.Enqueued != 1 || s.Running != 0 || s.Pending != 0 {
					t.Errorf("got %v, want one run", s)
				}
				checkError(t, e.Close(), nil)
			})
		})
	}
	// Two of them do not keep each other going either.
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		a := start(t, sink, waves.Options{Name: "a"}, waves.Stage{Trigger: "*", Work: fail, OnStart: "a.1", OnFailure: "a.2"})
		b := start(t, sink, waves.Options{Name: "b"},
			waves.Stage{Name: "x", Trigger: "*", Work: fail, OnStart: "b.1", OnFailure: "b.2"},
			waves.Stage{Name: "y", Trigger: "*", Work: quick, OnStart: "b.3", OnComplete: "b.4"})
		sink.Raise("go")
		synctest.Wait() // it comes to rest
		checkError(t, a.Close(), nil)
		checkError(t, b.Close(), nil)
	})
}

// Weak point: chains restart at every trigger, so stages in a circle are never
// stopped.
func TestStagesInACircleAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked []string
		sink := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: func(s core.Signal, why core.BlockReason) {
			blocked = append(blocked, strings.Join(s.Path(), ">")+" "+why.String())
		}}})
		e := start(t, sink, waves.Options{},
			waves.Stage{Trigger: "a", Work: quick, OnComplete: "b"},
			waves.Stage{Trigger: "b", Work: quick, OnComplete: "c"},
			waves.Stage{Trigger: "c", Work: func(ctx context.Context, s core.Signal) error {
				core.OperationFrom(ctx).Because(s).Raise("d") // what names its cause counts
				return nil
			}},
			waves.Stage{Trigger: "d", Work: quick, OnComplete: "a"},
		)
		sink.Raise("a")
		synctest.Wait()
		checkEqual(t, "runs", e.Stats().Enqueued, 4)
		checkEqual(t, "blocked", strings.Join(blocked, ", "), "a>b>c>d>a cycle")
		checkError(t, e.Close(), nil)
	})
}

func TestEarlyExitCancelsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "s.*,stage.*")
		var cause error
		e := start(t, sink, waves.Options{EarlyExit: "verdict.*", MaxConcurrency: 2},
			waves.Stage{Name: "s", Trigger: "go", OnStart: "s.start", OnComplete: "s.done", OnFailure: "s.failed", Work: func(ctx context.Context, s core.Signal) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return ctx.Err()
			}},
			waves.Stage{Name: "hard", Trigger: "go", Work: func(context.Context, core.Signal) error { time.Sleep(time.Minute); return nil }, OnComplete: "s.hard"},
			waves.Stage{Name: "late", Trigger: "verdict.*", Work: quick, OnStart: "s.late"}, // a signal that is both sets off nothing
		)
		if _, ok := e.Exited(); ok {
			t.Error("exited before any signal")
		}
		for range 5 {
			sink.RaiseKey("go", "k")
		}
		synctest.Wait()
		signals.ExpectExactly("s.start")
		sink.RaiseKey("verdict.bot", "user")
		exit := sense(t, sink, waves.SignalExit)
		checkEqual(t, "key", exit.Key, "user")
		checkEqual(t, "path", strings.Join(exit.Path(), ">"), "verdict.bot>stage.exit")
		if s, ok := e.Exited(); !ok || s.Name != "verdict.bot" || s.Key != "user" {
			t.Errorf("Exited: got %v %t, want the verdict", s, ok)
		}
		synctest.Wait()
		signals.ExpectExactly("stage.*", "stage.*")
		cancelled := sense(t, sink, waves.SignalCancel).Payload().(waves.Event)
		checkEqual(t, "cancelled", cancelled.Stage, "s")
		if by, ok := errors.AsType[*waves.ExitError](cause); !ok || by.Signal.Name != "verdict.bot" {
			t.Errorf("got cause %v, want the exit", cause)
		}
		checkEqual(t, "text", cause.Error(), `waves: early exit because of signal "verdict.bot"`)

		// Weak point: after the exit it is dead, but still subscribed.
		sink.Raise("go")
		sink.Raise("verdict.human")
		e.Start()
		checkError(t, e.Flush(t.Context()), nil)
		signals.ExpectExactly("s.hard") // it did not heed its context; what it says is true
		checkStats(t, e, core.Stats{Enqueued: 10, Succeeded: 1, Cancelled: 9, Closed: true})
		if s, _ := e.Exited(); s.Name != "verdict.bot" {
			t.Errorf("Exited: got %v, want the first verdict", s)
		}
		checkError(t, e.Close(), nil)
	})
}

// Weak point: queued runs still emit OnStart after cancellation. Here slots become
// free while many queued runs are being discarded.
func TestNoQueuedRunStartsWhileTheExitIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		sink := core.NewSink(core.SinkOptions{})
		e := start(t, sink, waves.Options{EarlyExit: "verdict", MaxQueued: n}, waves.Stage{Trigger: "go", Work: takes(time.Hour), OnStart: "started"})
		for range n {
			sink.Raise("go")
		}
		synctest.Wait()
		sink.Forget(core.Query{Pattern: "go, started"})
		sink.Raise("verdict")
		checkError(t, e.Drain(t.Context()), nil)
		checkEqual(t, "cancelled", sink.Count(waves.SignalCancel), 4)
		checkEqual(t, "started since", sink.Count("started"), 0)
		checkStats(t, e, core.Stats{Enqueued: n, Cancelled: n, Closed: true})
	})
}

// The exit may be taken by a signal of a stage of its own: from the work, from
// OnStart, from OnComplete.
func TestEarlyExitFromInside(t *testing.T) {
	for name, s := range map[string]waves.Stage{
		"operation": {Work: func(ctx context.Context, _ core.Signal) error {
			core.OperationFrom(ctx).Raise("verdict")
			return context.Cause(ctx)
		}},
		"start": {OnStart: "verdict", Work: func(context.Context, core.Signal) error {
			panic("the work has started all the same")
		}},
		"complete": {OnComplete: "verdict", Work: quick},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				signals := coretest.Watch(t, sink, "stage.*")
				s.Trigger = "go"
				e := start(t, sink, waves.Options{EarlyExit: "verdict", MaxConcurrency: 1}, s,
					waves.Stage{Name: "first", Trigger: "first", Work: takes(time.Second)})
				sink.Raise("first")
				sink.Raise("go")
				sink.Raise("go")
				checkError(t, e.Flush(t.Context()), nil)
				if name == "complete" {
					signals.ExpectExactly(waves.SignalExit)
					checkStats(t, e, core.Stats{Enqueued: 3, Succeeded: 2, Cancelled: 1, Closed: true})
				} else {
					signals.ExpectExactly(waves.SignalExit, waves.SignalCancel)
					checkStats(t, e, core.Stats{Enqueued: 3, Succeeded: 1, Cancelled: 2, Closed: true})
				}
			})
		})
	}
}

// Whatever the work does at the moment of the exit: nothing starts after it, and
// the books balance.
func TestEarlyExitAmongRuns(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			sink := core.NewSink(core.SinkOptions{})
			var exits atomic.Int64
			defer sink.Subscribe(waves.SignalExit, func(core.Signal) { exits.Add(1) })()
			e := start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", OnComplete: "done", Work: func(context.Context, core.Signal) error {
				runtime.Gosched()
				return nil
			}})
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 50 {
						sink.Raise("go")
					}
				})
			}
			for range 3 {
				all.Go(func() { runtime.Gosched(); sink.Raise("verdict") })
			}
			all.Wait()
			checkEqual(t, "exits", exits.Load(), 1)
			checkError(t, e.Drain(t.Context()), nil)
			s := e.Stats()
			if err := coretest.CheckBooks(s); err != nil || s.Failed != 0 || s.Dropped != 0 {
				t.Errorf("got %v (%v), want runs that succeeded or were cancelled", s, err)
			}
			checkEqual(t, "done", sink.Count("done"), int(s.Succeeded))
		})
	}
}

// Weak point: a time limit of the work itself is reported as cancellation.
func TestOwnTimeLimitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "stage.*,failed")
		e := start(t, sink, waves.Options{}, waves.Stage{Trigger: "go", OnFailure: "failed", Work: func(ctx context.Context, s core.Signal) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return takes(time.Hour)(ctx, s)
		}})
		sink.Raise("go")
		checkError(t, e.Drain(t.Context()), nil)
		raised := signals.ExpectExactly("failed", waves.SignalFail)
		checkEqual(t, "error", raised[1].Payload().(waves.Event).Err, context.DeadlineExceeded)
		checkStats(t, e, core.Stats{Enqueued: 1, Failed: 1, Closed: true})
	})
}

// Weak point: beyond the queue nobody knows what happens to a run.
func TestFullQueueDropsTheOldestAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		var ran []string
		e := start(t, sink, waves.Options{MaxConcurrency: 1, MaxQueued: 3}, waves.Stage{Trigger: "go", OnStart: "started", Work: func(_ context.Context, s core.Signal) error {
			time.Sleep(time.Second)
			ran = append(ran, s.Key)
			return nil
		}})
		sink.RaiseKey("go", "0")
		synctest.Wait()
		begun := time.Now()
		for i := 1; i < 10; i++ {
			sink.RaiseKey("go", fmt.Sprint(i))
		}
		checkEqual(t, "the raiser waited", time.Since(begun), 0)
		checkError(t, e.Drain(t.Context()), nil)
		checkEqual(t, "ran", strings.Join(ran, ""), "0789")
		checkEqual(t, "started", sink.Count("started"), 4)
		checkStats(t, e, core.Stats{Enqueued: 10, Succeeded: 4, Dropped: 6, Closed: true})
	})
}

// Weak point: Start is not safe for concurrent use, and runs twice what it is
// called twice for.
func TestStartManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		sink.Raise("go") // before Start: does not count
		sink.Raise("verdict")
		e, err := waves.New(sink, []waves.Stage{{Trigger: "go", Work: quick}}, waves.Options{EarlyExit: "verdict"})
		checkError(t, err, nil)
		sink.Raise("go")
		var all sync.WaitGroup
		for range 10 {
			all.Go(e.Start)
		}
		all.Wait()
		sink.Raise("go")
		checkError(t, e.Drain(t.Context()), nil)
		checkStats(t, e, core.Stats{Enqueued: 1, Succeeded: 1, Closed: true})
		e.Start()
		sink.Raise("go")
		sink.Raise("verdict")
		checkStats(t, e, core.Stats{Enqueued: 1, Succeeded: 1, Closed: true})
		if _, ok := e.Exited(); ok {
			t.Error("a drained executor took the exit")
		}

		e, err = waves.New(sink, []waves.Stage{{Trigger: "go", Work: quick}}, waves.Options{})
		checkError(t, err, nil)
		e.Complete()
		e.Start() // too late
		sink.Raise("go")
		checkStats(t, e, core.Stats{Closed: true})
	})
}

func TestCloseReportsCancelledRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "stage.*")
		e := start(t, sink, waves.Options{MaxConcurrency: 1}, waves.Stage{Name: "s", Trigger: "go", Work: takes(time.Hour)})
		sink.RaiseKey("go", "k")
		sink.RaiseKey("go", "l")
		synctest.Wait()
		checkError(t, e.Close(), nil)
		s := signals.ExpectExactly(waves.SignalCancel)[0]
		checkEqual(t, "key", s.Key, "k")
		checkEqual(t, "event", s.Payload().(waves.Event).Stage, "s")
		checkStats(t, e, core.Stats{Enqueued: 2, Cancelled: 2, Closed: true})
	})
}

// Complete and a Drain that gave up end the intake; the exit can still be taken.
func TestEarlyExitAfterComplete(t *testing.T) {
	for name, end := range map[string]func(t testing.TB, e *waves.Executor){
		"complete": func(_ testing.TB, e *waves.Executor) { e.Complete() },
		"drain": func(t testing.TB, e *waves.Executor) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			checkError(t, e.Drain(ctx), context.DeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{})
				e := start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", Work: takes(time.Hour)})
				sink.Raise("go")
				synctest.Wait()
				end(t, e)
				sink.Raise("go")
				checkStats(t, e, core.Stats{Enqueued: 1, Running: 1, Closed: true})
				begun := time.Now()
				sink.Raise("verdict")
				checkError(t, e.Drain(t.Context()), nil)
				checkEqual(t, "took", time.Since(begun), 0)
				checkStats(t, e, core.Stats{Enqueued: 1, Cancelled: 1, Closed: true})
			})
		})
	}
}

// A handler of SignalExit may wait for the runs, and the work may close the
// executor meanwhile.
func TestCloseFromTheWorkWhileAHandlerOfTheExitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		var e *waves.Executor
		e = start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", Work: func(ctx context.Context, _ core.Signal) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return e.Close()
		}})
		defer sink.Subscribe(waves.SignalExit, func(core.Signal) { checkError(t, e.Flush(t.Context()), nil) })()
		sink.Raise("go")
		synctest.Wait()
		sink.Raise("verdict")
		checkStats(t, e, core.Stats{Enqueued: 1, Succeeded: 1, Closed: true})
	})
}

// That a run starts is no reason to leave, however wide the pattern.
func TestLifecycleSignalsAreNoEarlyExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		e := start(t, sink, waves.Options{EarlyExit: "atom.*"}, waves.Stage{Trigger: "go", Work: quick})
		sink.Raise("go")
		checkError(t, e.Drain(t.Context()), nil)
		checkStats(t, e, core.Stats{Enqueued: 1, Succeeded: 1, Closed: true})
	})
}

// The sink's rules hold for what an executor raises too: a verdict that ends chains
// ends the work all the same.
func TestTerminalExitSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Propagation: core.Propagation{Terminal: "verdict"}})
		e := start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", Work: takes(time.Hour)})
		sink.Raise("go")
		sink.Raise("verdict")
		_, exited := e.Exited()
		checkEqual(t, "exited", exited, true)
		checkEqual(t, "said so", sink.Has(waves.SignalExit), false)
		checkError(t, e.Close(), nil)
	})
}

func TestOptions(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	stage := waves.Stage{Trigger: "go", Work: quick}
	e := start(t, sink, waves.Options{}, stage)
	checkEqual(t, "limit", e.Stats().Limit, 4)
	checkError(t, e.Close(), nil)

	with := func(change func(s *waves.Stage)) []waves.Stage {
		s := stage
		change(&s)
		return []waves.Stage{s}
	}
	for want, c := range map[string]struct {
		stages []waves.Stage
		opts   waves.Options
	}{
		"at least one stage":                     {},
		`two stages "stage-2"`:                   {stages: []waves.Stage{{Name: "stage-2", Trigger: "go", Work: quick}, stage}},
		`stage "stage-1": Work is nil`:           {stages: with(func(s *waves.Stage) { s.Work = nil })},
		`Trigger is " , "`:                       {stages: with(func(s *waves.Stage) { s.Trigger = " , " })},
		`OnStart is "a, b*"`:                     {stages: with(func(s *waves.Stage) { s.OnStart = "a, b*" })},
		`OnComplete is "?"`:                      {stages: with(func(s *waves.Stage) { s.OnComplete = "?" })},
		`stage "x": OnFailure is "*"`:            {stages: with(func(s *waves.Stage) { s.Name, s.OnFailure = "x", "*" })},
		"MaxConcurrency is -1":                   {stages: []waves.Stage{stage}, opts: waves.Options{MaxConcurrency: -1}},
		"MaxQueued is -1, but must not be negat": {stages: []waves.Stage{stage}, opts: waves.Options{MaxQueued: -1}},
	} {
		e, err := waves.New(sink, c.stages, c.opts)
		if e != nil || err == nil || !strings.HasPrefix(err.Error(), "waves: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v and %v, want an error with %q", e, err, want)
		}
	}
	if _, err := waves.New(nil, []waves.Stage{stage}, waves.Options{}); err == nil {
		t.Error("no error without a sink")
	}
}
