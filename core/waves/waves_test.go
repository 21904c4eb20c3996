package waves_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/waves"
)

var errOnPurpose = errors.New("failed on purpose")

func quick(context.Context, signals.Signal) error { return nil }

func fails(context.Context, signals.Signal) error { return errOnPurpose }

func panics(context.Context, signals.Signal) error { panic("on purpose") }

func hangs(ctx context.Context, _ signals.Signal) error { <-ctx.Done(); return context.Cause(ctx) }

// start makes an executor with a verdict as its early exit, and starts it.
func start(opts core.Options, stages ...waves.Stage) *waves.Executor {
	e := core.Must(waves.New(stages, "verdict, operation.st*", opts))
	e.Start()
	return e
}

func check(t testing.TB, what string, got, want any) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
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

// The suite submits bodies as payloads of signals that start a stage. A body is accepted if
// Enqueued counts it. Submits take turns, so that it is clear which body was counted.
func TestLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("coretest.body")
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		e := start(core.Options{}, waves.Stage{Trigger: "coretest.body", Work: func(ctx context.Context, s signals.Signal) error {
			run, _ := body.From(s)
			return run(ctx)
		}})
		var turn sync.Mutex
		return coretest.Subject{
			Lifecycle: e,
			Submit: func(_ context.Context, b coretest.Body) error {
				turn.Lock()
				defer turn.Unlock()
				before := e.Stats().Enqueued
				body.Raise(e.Sink(), "", b)
				if e.Stats().Enqueued == before {
					return core.ErrClosed
				}
				return nil
			},
			Pause: e.Pause, Resume: e.Resume, WaitIdle: e.WaitIdle, Sink: e.Sink(), Stats: e.Stats,
		}
	})
}

// A trigger queues one run of each stage that matches, in their order; a full queue drops the
// oldest. Signals before Start do not count. A second Start, or a Start after the end, changes
// nothing.
func TestEachTriggerQueuesOneRunOfEachMatchingStageInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.Must(waves.New([]waves.Stage{{Name: "b", Trigger: "x.*", Work: quick}, {Trigger: "y, x.1", Work: quick}},
			"verdict", core.Options{MaxConcurrency: 1, MaxQueued: 5}))
		e.Sink().Raise("y")
		e.Sink().Raise("verdict")
		var all sync.WaitGroup
		for range 10 {
			all.Go(e.Start)
		}
		all.Wait()
		e.Pause()
		for i, name := range []string{"x.1", "x.2", "y", "z", "x.1"} {
			e.Sink().RaiseKey(name, fmt.Sprint(i))
		}
		e.Resume()
		drain(t, e, core.Stats{Enqueued: 6, Succeeded: 5, Dropped: 1})
		runs := ""
		for op := range e.Operations(core.OperationQuery{Status: core.StatusSucceeded}) {
			stage, _ := core.Value[string](op, waves.ValueStage)
			runs += stage + op.Key + " "
		}
		check(t, "runs", runs, "stage-20 b1 stage-22 b4 stage-24 ")
		e.Start()
		e.Sink().Raise("y")
		e.Sink().Raise("verdict")
		drain(t, e, core.Stats{Enqueued: 6, Succeeded: 5, Dropped: 1})
		_, exited := e.Exited()
		check(t, "exited", exited, false)
	})
}

// Fault avoided: a time limit of the work is reported as cancellation.
func TestWhatARunRaisesHasKeyCauseAndEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(core.Options{MaxConcurrency: 1, Timeout: time.Second},
			waves.Stage{Name: "works", Trigger: "go", Work: quick, OnStart: "s.start", OnComplete: "s.done, s.vote", OnFailure: "s.failed"},
			waves.Stage{Name: "fails", Trigger: "go", Work: fails, OnStart: "f.start", OnComplete: "f.done", OnFailure: "f.failed"},
			waves.Stage{Name: "panics", Trigger: "go", Work: panics, OnFailure: "p.failed"},
			waves.Stage{Name: "late", Trigger: "go", Work: hangs},
			waves.Stage{Name: "own", Trigger: "go", Work: func(ctx context.Context, s signals.Signal) error {
				ctx, cancel := context.WithTimeoutCause(ctx, time.Millisecond, errOnPurpose)
				defer cancel()
				return hangs(ctx, s)
			}})
		facts := coretest.Watch(t, e.Sink(), "s.*,f.*,p.*,stage.*")
		e.Sink().RaiseKey("go", "k")
		drain(t, e, core.Stats{Enqueued: 5, Succeeded: 1, Failed: 4})
		failed := waves.Failed.Name()
		raised := facts.ExpectExactly("s.start", "s.done", "s.vote", "f.start", "f.failed", failed, "p.failed", failed, failed, failed)
		for i, s := range raised {
			check(t, "key and path", s.Key+" "+strings.Join(s.Path(), ">"), "k go>"+s.Name)
			event := s.Payload().(waves.Event)
			check(t, "stage", event.Stage, strings.Fields("works works works fails fails fails panics panics late own")[i])
			check(t, s.Name+" has an error", event.Err != nil, i > 3)
		}
		for i, want := range map[int]error{5: errOnPurpose, 8: core.ErrTimeout, 9: errOnPurpose} {
			failure, _ := waves.Failed.From(raised[i])
			check(t, "error", failure.Err, want)
		}
	})
}

// Fault avoided: signals of the executor's own coordinator start stages with triggers like
// "*" or "operation.*", endlessly. Lifecycle signals do not cause the early exit either.
func TestStageTriggeredByEverythingDoesNotLoop(t *testing.T) {
	for name, work := range map[string]core.Work[signals.Signal]{
		"quick": quick, "fails": fails, "panics": panics,
		"raises": func(ctx context.Context, _ signals.Signal) error { core.OperationFrom(ctx).Raise("noted"); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			e := start(core.Options{},
				waves.Stage{Name: "all", Trigger: "*", Work: work, OnStart: "a.start", OnComplete: "a.done", OnFailure: "a.failed"},
				waves.Stage{Name: "atoms", Trigger: "operation.*, coordinator.*", Work: work})
			other := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{Sink: e.Sink()}))
			check(t, "other", other.Do(t.Context(), 1), nil) // raises lifecycle signals, too
			e.Sink().Raise("go")
			synctest.Wait()
			check(t, name+": runs", fmt.Sprint(e.Stats().Enqueued, e.Stats().Running, e.Stats().Pending), "1 0 0")
			_, exited := e.Exited()
			check(t, "exited", exited, false)
			check(t, "error", e.Close(), nil)
		})
	}
}

// Fault avoided: chains restart at every trigger, so stages in a circle are never stopped.
func TestStagesInACircleAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := ""
		sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{OnBlocked: func(s signals.Signal, why signals.BlockReason) {
			blocked += strings.Join(s.Path(), ">") + " " + why.String()
		}}})
		e := start(core.Options{Sink: sink}, waves.Stage{Trigger: "a", Work: quick, OnComplete: "b"},
			waves.Stage{Trigger: "b", Work: func(ctx context.Context, s signals.Signal) error {
				core.OperationFrom(ctx).Because(s).Raise("c") // a signal with another signal as its cause counts
				return nil
			}},
			waves.Stage{Trigger: "c", Work: quick, OnComplete: "a"})
		sink.Raise("a")
		synctest.Wait()
		check(t, "blocked", blocked, "a>b>c>a cycle")
		drain(t, e, core.Stats{Enqueued: 3, Succeeded: 3})
	})
}

// The exit cancels running work, and nothing starts after it: no waiting run, no work of the
// run whose OnStart is the exit, and no stage that the signal would start.
func TestEarlyExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(core.Options{MaxConcurrency: 1},
			waves.Stage{Name: "hangs", Trigger: "go", Work: hangs, OnComplete: "done", OnFailure: "failed"},
			waves.Stage{Name: "exits", Trigger: "go", OnStart: "verdict", Work: panics}, // the work is not called
			waves.Stage{Trigger: "verdict", Work: quick, OnStart: "late"})
		facts := coretest.Watch(t, e.Sink(), "stage.*, "+earlyexit.SignalExited+", done, failed, late")
		for range 3 {
			e.Sink().RaiseKey("go", "k")
		}
		synctest.Wait() // the first work hangs
		check(t, "limit", e.SetMaxConcurrency(2), nil)
		synctest.Wait()
		e.Sink().Raise("go") // starts nothing any more
		drain(t, e, core.Stats{Enqueued: 6, Cancelled: 6, Rejected: e.Stats().Rejected})
		any := earlyexit.SignalExited + ", " + waves.Cancelled.Name() // the work that hangs may be the first to see the exit
		raised := facts.ExpectExactly(any, any, any)
		verdict, _ := e.Exited()
		at := slices.IndexFunc(raised, func(s signals.Signal) bool { return s.Name == earlyexit.SignalExited })
		check(t, "exit", verdict.Name+" "+strings.Join(raised[max(0, at)].Path(), ">"), "verdict go>verdict>"+earlyexit.SignalExited)
		for _, s := range slices.Delete(raised, at, at+1) {
			event, _ := waves.Cancelled.From(s)
			check(t, event.Stage, errors.As(event.Err, new(*earlyexit.ExitedError)), true)
		}
	})
}

// A run does not begin if the signal comes between the start of its operation and its body.
func TestEarlyExitBeforeARunBegins(t *testing.T) {
	e := start(core.Options{}, waves.Stage{Trigger: "go", Work: panics, OnStart: "began"})
	e.Sink().Subscribe(signals.SignalStarted, func(signals.Signal) { e.Sink().Raise("verdict") })
	e.Sink().Raise("go")
	drain(t, e, core.Stats{Enqueued: 1, Cancelled: 1})
	check(t, "began", e.Sink().Has("began"), false)
}

func TestOptions(t *testing.T) {
	e := start(core.Options{}, waves.Stage{Trigger: "go", Work: quick})
	check(t, "limit and name", fmt.Sprint(e.Stats().Limit, e.Name()), "4waves")
	for want, stages := range map[string][]waves.Stage{
		"at least one stage":           {},
		`two stages "stage-2"`:         {{Name: "stage-2", Trigger: "go", Work: quick}, {Trigger: "go", Work: quick}},
		`stage "stage-1": Work is nil`: {{Trigger: "go"}},
		`Trigger is " , "`:             {{Trigger: " , ", Work: quick}},
		`OnStart is "a, b*"`:           {{Trigger: "go", Work: quick, OnStart: "a, b*"}},
		`OnComplete is "?"`:            {{Trigger: "go", Work: quick, OnComplete: "?"}},
		`stage "x": OnFailure is "*"`:  {{Name: "x", Trigger: "go", Work: quick, OnFailure: "*"}},
		"MaxConcurrency is -1":         {{Trigger: "go", Work: quick}},
		"Options.Lanes and Classes":    {{Trigger: "go", Work: quick}},
	} {
		opts := map[string]core.Options{"Max": {MaxConcurrency: -1}, "Opt": {Lanes: []core.Lane{{Name: "a"}}}}[want[:3]]
		e, err := waves.New(stages, "", opts)
		coretest.Check(t, e == nil, "got %v, want none", e)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "waves: "), "got error %v, want one of the package", err)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), want), "got error %v, want %q", err, want)
	}
}
