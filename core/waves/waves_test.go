package waves_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
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

func panics(context.Context, core.Signal) error { panic("on purpose") }

func hangs(ctx context.Context, _ core.Signal) error { <-ctx.Done(); return ctx.Err() }

func sleeps(context.Context, core.Signal) error { time.Sleep(time.Second); return nil }

// bubble runs a test with a sink, in fake time.
func bubble(t *testing.T, name string, test func(t *testing.T, sink *core.Sink)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, core.NewSink(core.SinkOptions{})) })
	})
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

func check(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// exited checks which signal made the executor leave, "" for none.
func exited(t testing.TB, e *waves.Executor, want string) {
	t.Helper()
	s, ok := e.Exited()
	check(t, "exited because of", fmt.Sprint(s.Name, ok), fmt.Sprint(want, want != ""))
}

// drain drains the executor and checks its counters.
func drain(t testing.TB, e *waves.Executor, want core.Stats) {
	t.Helper()
	check(t, "drain", e.Drain(t.Context()), nil)
	got := e.Stats()
	check(t, "books", coretest.CheckBooks(got), nil)
	want.Tracked, want.Limit, want.Closed = got.Tracked, got.Limit, true
	check(t, "counters", got.String(), want.String())
}

// runs lists the operations: stage, key and status.
func runs(e *waves.Executor) string {
	var list []string
	for op := range e.Operations(core.OperationQuery{}) {
		stage, _ := core.Value[string](op, waves.ValueStage)
		list = append(list, fmt.Sprint(stage, " ", op.Key, " ", op.Status))
	}
	return strings.Join(list, ", ")
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
			Pause: e.Pause, Resume: e.Resume, WaitIdle: e.WaitIdle,
			Sink:  sink,
			Stats: e.Stats,
		}
	})
}

func TestEachTriggerQueuesOneRunOfEachMatchingStageInOrder(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		e := start(t, sink, waves.Options{MaxConcurrency: 1},
			waves.Stage{Name: "b", Trigger: "x.*", Work: quick}, waves.Stage{Name: "a", Trigger: "y, x.1", Work: quick})
		for i, name := range []string{"x.1", "x.2", "y", "z", "x.1"} {
			sink.RaiseKey(name, fmt.Sprint(i))
		}
		drain(t, e, core.Stats{Enqueued: 6, Succeeded: 6})
		check(t, "runs", runs(e), "b 0 succeeded, a 0 succeeded, b 1 succeeded, a 2 succeeded, b 4 succeeded, a 4 succeeded")
	})
}

// Also a weak point of the original: failures are counted as completed.
func TestWhatARunRaisesHasKeyCauseAndEvent(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		signals := coretest.Watch(t, sink, "s.*,f.*,p.*,stage.*")
		e := start(t, sink, waves.Options{MaxConcurrency: 1},
			waves.Stage{Name: "succeeds", Trigger: "go", Work: quick, OnStart: "s.start", OnComplete: "s.done, s.vote", OnFailure: "s.failed"},
			waves.Stage{Name: "fails", Trigger: "go", Work: fail, OnStart: "f.start", OnComplete: "f.done", OnFailure: "f.failed"},
			waves.Stage{Name: "panics", Trigger: "go", Work: panics, OnFailure: "p.failed"},
		)
		sink.RaiseKey("go", "k")
		drain(t, e, core.Stats{Enqueued: 3, Succeeded: 1, Failed: 2})
		raised := signals.ExpectExactly("s.start", "s.done", "s.vote", "f.start", "f.failed", waves.SignalFailed, "p.failed", waves.SignalFailed)
		for i, s := range raised {
			check(t, "key", s.Key, "k")
			check(t, "path", strings.Join(s.Path(), ">"), "go>"+s.Name)
			event := s.Payload().(waves.Event)
			check(t, "stage", event.Stage, strings.Fields("succeeds succeeds succeeds fails fails fails panics panics")[i])
			check(t, s.Name+" has an error", event.Err != nil, i > 3)
		}
		failure, _ := waves.Failed.From(raised[5])
		check(t, "error", failure.Err, errOnPurpose)
		check(t, "operations", runs(e), "succeeds k succeeded, fails k failed, panics k failed")
	})
}

// Weak point: the signals of its own coordinator set off stages with triggers like "*" or
// "atom.*", endlessly. Lifecycle signals do not take the exit either.
func TestStageTriggeredByEverythingDoesNotLoop(t *testing.T) {
	for name, work := range map[string]core.Work[core.Signal]{
		"quick":  quick,
		"fails":  fail,
		"panics": panics,
		"raises through its operation": func(ctx context.Context, _ core.Signal) error {
			core.OperationFrom(ctx).Raise("noted")
			return nil
		},
	} {
		bubble(t, name, func(t *testing.T, sink *core.Sink) {
			e := start(t, sink, waves.Options{EarlyExit: "atom.st*"},
				waves.Stage{Name: "all", Trigger: "*", Work: work, OnStart: "a.start", OnComplete: "a.done", OnFailure: "a.failed"},
				waves.Stage{Name: "atoms", Trigger: "atom.*, coordinator.*", Work: work},
			)
			other := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{Sink: sink}))
			check(t, "other", other.Do(t.Context(), 1), nil) // raises lifecycle signals, too
			sink.Raise("go")
			synctest.Wait()
			if s := e.Stats(); s.Enqueued != 1 || s.Running != 0 || s.Pending != 0 {
				t.Errorf("got %v, want one run", s)
			}
			exited(t, e, "")
			check(t, "error", e.Close(), nil)
		})
	}
}

// Weak point: chains restart at every trigger, so stages in a circle are never stopped.
func TestStagesInACircleAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked []string
		sink := core.NewSink(core.SinkOptions{Propagation: core.Propagation{OnBlocked: func(s core.Signal, why core.BlockReason) {
			blocked = append(blocked, strings.Join(s.Path(), ">")+" "+why.String())
		}}})
		e := start(t, sink, waves.Options{},
			waves.Stage{Trigger: "a", Work: quick, OnComplete: "b"},
			waves.Stage{Trigger: "b", Work: func(ctx context.Context, s core.Signal) error {
				core.OperationFrom(ctx).Because(s).Raise("c") // a signal with a cause counts
				return nil
			}},
			waves.Stage{Trigger: "c", Work: quick, OnComplete: "a"},
		)
		sink.Raise("a")
		synctest.Wait()
		check(t, "runs", e.Stats().Enqueued, uint64(3))
		check(t, "blocked", strings.Join(blocked, ", "), "a>b>c>a cycle")
		check(t, "error", e.Close(), nil)
	})
}

// Also a weak point of the original: after the exit it does nothing, but still listens.
func TestEarlyExitCancelsEverything(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		signals, exits := coretest.Watch(t, sink, "s.*,stage.cancelled"), coretest.Watch(t, sink, waves.SignalExited)
		var cause error
		untilTheExit := func(ctx context.Context, s core.Signal) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}
		e := start(t, sink, waves.Options{EarlyExit: "verdict.*", MaxConcurrency: 2},
			waves.Stage{Name: "s", Trigger: "go", OnStart: "s.start", OnComplete: "s.done", OnFailure: "s.failed", Work: untilTheExit},
			waves.Stage{Trigger: "go", Work: func(context.Context, core.Signal) error { time.Sleep(time.Minute); return nil }, OnComplete: "s.hard"},
			waves.Stage{Trigger: "verdict.*", Work: quick, OnStart: "s.late"}, // a signal that is both sets off nothing
		)
		for range 5 {
			sink.RaiseKey("go", "k")
		}
		synctest.Wait()
		sink.RaiseKey("verdict.bot", "user")
		synctest.Wait()
		exit := exits.ExpectExactly(waves.SignalExited)[0]
		check(t, "key", exit.Key, "user")
		check(t, "path", strings.Join(exit.Path(), ">"), "verdict.bot>stage.exited")
		cancelled, _ := waves.Cancelled.From(signals.ExpectExactly("s.start", waves.SignalCancelled)[1])
		check(t, "cancelled", cancelled.Stage, "s")
		check(t, "cause", cause.Error(), `waves: early exit because of signal "verdict.bot"`)

		sink.Raise("go")
		sink.Raise("verdict.human")
		e.Start()
		drain(t, e, core.Stats{Enqueued: 10, Succeeded: 1, Cancelled: 9})
		signals.ExpectExactly("s.hard") // it ignores its context, and has done its work
		exited(t, e, "verdict.bot")
		check(t, "error", e.Close(), nil)
	})
}

// Weak point: queued runs still raise OnStart after the cancellation. Here slots become
// free while many queued runs are being discarded.
func TestNoQueuedRunStartsWhileTheExitIsTaken(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		const n = 20_000
		e := start(t, sink, waves.Options{EarlyExit: "verdict", MaxQueued: n}, waves.Stage{Trigger: "go", Work: hangs, OnStart: "started"})
		for range n {
			sink.Raise("go")
		}
		synctest.Wait()
		sink.Forget(core.Query{Pattern: "go, started"})
		sink.Raise("verdict")
		drain(t, e, core.Stats{Enqueued: n, Cancelled: n})
		check(t, "cancelled", sink.Count(waves.SignalCancelled), 4)
		check(t, "started since", sink.Count("started"), 0)
	})
}

// A run may cause the exit itself.
func TestEarlyExitFromInside(t *testing.T) {
	for name, stage := range map[string]waves.Stage{
		"by its work": {Work: func(ctx context.Context, _ core.Signal) error {
			core.OperationFrom(ctx).Raise("verdict")
			return context.Cause(ctx)
		}},
		"by OnStart": {OnStart: "verdict", Work: panics}, // it is not called
	} {
		bubble(t, name, func(t *testing.T, sink *core.Sink) {
			signals := coretest.Watch(t, sink, "stage.*")
			stage.Trigger = "go"
			e := start(t, sink, waves.Options{EarlyExit: "verdict", MaxConcurrency: 1}, stage, waves.Stage{Trigger: "first", Work: sleeps})
			for _, name := range []string{"first", "go", "go"} {
				sink.Raise(name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 1)
			defer cancel()
			check(t, "drain", e.Drain(ctx), context.DeadlineExceeded) // the exit can still be taken
			sink.Raise("go")
			drain(t, e, core.Stats{Enqueued: 3, Succeeded: 1, Cancelled: 2})
			signals.ExpectExactly(waves.SignalExited, waves.SignalCancelled)
		})
	}
}

// However many runs and exits there are at once: one exit is taken, nothing starts after
// it, and the counters balance.
func TestEarlyExitAmongRuns(t *testing.T) {
	for range 50 {
		bubble(t, "", func(t *testing.T, sink *core.Sink) {
			yields := func(context.Context, core.Signal) error { runtime.Gosched(); return nil }
			e := start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", OnComplete: "done", Work: yields})
			var all sync.WaitGroup
			for i := range 7 {
				all.Go(func() {
					for range 50 {
						sink.Raise([]string{"go", "verdict"}[i/4])
						runtime.Gosched()
					}
				})
			}
			all.Wait()
			check(t, "error", e.Flush(t.Context()), nil)
			s := e.Stats()
			drain(t, e, core.Stats{Enqueued: s.Enqueued, Succeeded: s.Succeeded, Cancelled: s.Cancelled, Rejected: s.Rejected})
			check(t, "done", uint64(sink.Count("done")), s.Succeeded)
			check(t, "exits", sink.Count(waves.SignalExited), 1)
		})
	}
}

// Weak point: a time limit of the work itself is reported as cancellation.
func TestOwnTimeLimitIsAFailure(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		e := start(t, sink, waves.Options{}, waves.Stage{Trigger: "go", Work: func(ctx context.Context, s core.Signal) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return hangs(ctx, s)
		}})
		signals := coretest.Watch(t, sink, "stage.*")
		sink.Raise("go")
		drain(t, e, core.Stats{Enqueued: 1, Failed: 1})
		check(t, "error", signals.ExpectExactly(waves.SignalFailed)[0].Payload().(waves.Event).Err, context.DeadlineExceeded)
	})
}

// Weak point: it is unknown what happens to runs beyond the queue.
func TestFullQueueDropsTheOldestAndCounts(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		ran := ""
		note := func(ctx context.Context, s core.Signal) error { ran += s.Key; return sleeps(ctx, s) }
		e := start(t, sink, waves.Options{MaxConcurrency: 1, MaxQueued: 3}, waves.Stage{Trigger: "go", Work: note})
		for i := range 10 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		drain(t, e, core.Stats{Enqueued: 10, Succeeded: 4, Dropped: 6})
		check(t, "ran", ran, "0789")
	})
}

// Weak point: Start is not safe for concurrent use, and what is started twice runs twice.
func TestStartManyTimes(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		e := core.Must(waves.New(sink, []waves.Stage{{Trigger: "go", Work: quick}}, waves.Options{EarlyExit: "verdict"}))
		sink.Raise("go") // before Start: does not count
		sink.Raise("verdict")
		var all sync.WaitGroup
		for range 10 {
			all.Go(e.Start)
		}
		all.Wait()
		sink.Raise("go")
		drain(t, e, core.Stats{Enqueued: 1, Succeeded: 1})
		e.Start() // too late
		sink.Raise("go")
		sink.Raise("verdict")
		drain(t, e, core.Stats{Enqueued: 1, Succeeded: 1})
		exited(t, e, "")
	})
}

// Stop discards what is queued and lets what has started end; Close cancels both. After
// that the executor listens to nothing: no trigger, not even the last run's, and no exit.
func TestStopAndClose(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(e *waves.Executor, ctx context.Context) error
		raised []string
		want   core.Stats
	}{
		"stop": {(*waves.Executor).Stop, []string{"started", "done"}, core.Stats{Enqueued: 2, Succeeded: 1, Cancelled: 1, Rejected: 1}},
		"close": {func(e *waves.Executor, _ context.Context) error { return e.Close() },
			[]string{"started", waves.SignalCancelled}, core.Stats{Enqueued: 2, Cancelled: 2}},
	} {
		bubble(t, name, func(t *testing.T, sink *core.Sink) {
			signals := coretest.Watch(t, sink, "stage.*, started, done")
			e := start(t, sink, waves.Options{MaxConcurrency: 1, EarlyExit: "verdict"},
				waves.Stage{Trigger: "go", OnStart: "started", OnComplete: "done", Work: func(ctx context.Context, s core.Signal) error {
					time.Sleep(time.Second)
					return ctx.Err()
				}},
				waves.Stage{Trigger: "done", Work: quick})
			sink.RaiseKey("go", "k")
			synctest.Wait()
			sink.Raise("go")
			check(t, "error", c.end(e, t.Context()), nil)
			sink.Raise("go")
			sink.Raise("verdict")
			check(t, "key", signals.ExpectExactly(c.raised...)[1].Key, "k")
			drain(t, e, c.want)
			exited(t, e, "")
		})
	}
}

// A handler of SignalExited may wait for the runs while the work closes the executor.
func TestCloseFromTheWorkWhileAHandlerOfTheExitWaits(t *testing.T) {
	bubble(t, "", func(t *testing.T, sink *core.Sink) {
		var e *waves.Executor
		e = start(t, sink, waves.Options{EarlyExit: "verdict"}, waves.Stage{Trigger: "go", Work: func(ctx context.Context, _ core.Signal) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return e.Close()
		}})
		defer sink.Subscribe(waves.SignalExited, func(core.Signal) { check(t, "error", e.Flush(t.Context()), nil) })()
		sink.Raise("go")
		synctest.Wait()
		sink.Raise("verdict")
		drain(t, e, core.Stats{Enqueued: 1, Succeeded: 1})
	})
}

func TestOptions(t *testing.T) {
	sink := core.NewSink(core.SinkOptions{})
	e := core.Must(waves.New(sink, []waves.Stage{{Trigger: "go", Work: quick}}, waves.Options{}))
	check(t, "limit", e.Stats().Limit, 4)
	check(t, "error", e.Close(), nil)
	e.Start() // too late
	sink.Raise("go")
	check(t, "rejected", e.Stats().Rejected, uint64(0))

	for want, stages := range map[string][]waves.Stage{
		"at least one stage":           {},
		`two stages "stage-2"`:         {{Name: "stage-2", Trigger: "go", Work: quick}, {Trigger: "go", Work: quick}},
		`stage "stage-1": Work is nil`: {{Trigger: "go"}},
		`Trigger is " , "`:             {{Trigger: " , ", Work: quick}},
		`OnStart is "a, b*"`:           {{Trigger: "go", Work: quick, OnStart: "a, b*"}},
		`OnComplete is "?"`:            {{Trigger: "go", Work: quick, OnComplete: "?"}},
		`stage "x": OnFailure is "*"`:  {{Name: "x", Trigger: "go", Work: quick, OnFailure: "*"}},
		"MaxConcurrency is -1":         {{Trigger: "go", Work: quick}},
		"there must be a sink":         nil,
	} {
		opts, on := waves.Options{}, sink
		switch {
		case stages == nil:
			on = nil
		case strings.HasPrefix(want, "Max"):
			opts.MaxConcurrency = -1
		}
		e, err := waves.New(on, stages, opts)
		if e != nil || err == nil || !strings.HasPrefix(err.Error(), "waves: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v and %v, want an error with %q", e, err, want)
		}
	}
}
