package molecules_test

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

var errOnPurpose = errors.New("failed on purpose")

type do = func(context.Context, *molecules.Run) error

func quick(context.Context, *molecules.Run) error { return nil }

func fail(context.Context, *molecules.Run) error { return errOnPurpose }

// takes runs for d, or until it is cancelled.
func takes(d time.Duration) do {
	return func(ctx context.Context, _ *molecules.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, j.lines = j.lines, nil
	return lines
}

// notes makes a function of a step that notes its name and returns err.
func (j *journal) notes(what string, err error) do {
	return func(context.Context, *molecules.Run) error { j.add("%s", what); return err }
}

func newRunner(t testing.TB, sink *core.Sink, opts molecules.Options, blueprints ...molecules.Blueprint) *molecules.Runner {
	t.Helper()
	r, err := molecules.New(sink, blueprints, opts)
	require.NoError(t, err)
	return r
}

func newSink() *core.Sink { return core.NewSink(core.SinkOptions{}) }

func steps(do ...do) (steps []molecules.Step) {
	for i, do := range do {
		steps = append(steps, molecules.Step{Name: fmt.Sprint("step", i), Do: do})
	}
	return steps
}

func blueprint(do ...do) molecules.Blueprint {
	return molecules.Blueprint{Name: "m", On: "go", Steps: steps(do...)}
}

// terminal names the signals with which runs end.
const terminal = molecules.SignalCompleted + "," + molecules.SignalFailed + "," + molecules.SignalCancelled

// Weak points of disposal: from inside a step it waits for itself; the suite has
// the others too.
func TestLifecycle(t *testing.T) {
	body := core.NewKind[coretest.Body]("coretest.body")
	for name, opts := range map[string]molecules.Options{
		"none":    {},
		"per key": {Order: molecules.OrderPerKey},
		"serial":  {Order: molecules.OrderSerial, MaxTracked: -1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := newSink()
				r := newRunner(t, sink, opts, molecules.Blueprint{Name: "m", On: "coretest.body", Steps: []molecules.Step{
					{Name: "first", Do: quick, Compensate: quick},
					{Name: "body", Do: func(ctx context.Context, r *molecules.Run) error {
						run, _ := body.From(r.Trigger)
						return run(ctx)
					}},
					{Name: "never", Await: "never", AwaitTimeout: 1},
				}})
				return coretest.Subject{
					Lifecycle: r,
					Submit:    submit(body, sink, r.Stats),
					Sink:      sink,
					Stats:     r.Stats,
				}
			})
		})
	}
}

// submit raises bodies, with different keys, as what sets things off, and says
// whether they did.
func submit(body core.Kind[coretest.Body], sink *core.Sink, stats func() core.Stats) func(context.Context, coretest.Body) error {
	var (
		turn sync.Mutex
		n    int
	)
	return func(_ context.Context, b coretest.Body) error {
		turn.Lock()
		defer turn.Unlock()
		before := stats().Enqueued
		n++
		body.Raise(sink, fmt.Sprint(n), b)
		if stats().Enqueued == before {
			return core.ErrClosed
		}
		return nil
	}
}

func TestStepsAreDoneInOrderAndShareTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, "molecule.*, paid, parcel")
		parcel := core.NewKind[int]("parcel")
		r := newRunner(t, sink, molecules.Options{Name: "shop"}, molecules.Blueprint{
			Name: "order", On: "order.*",
			Steps: []molecules.Step{
				{Name: "pay", Do: func(ctx context.Context, r *molecules.Run) error {
					time.Sleep(time.Second)
					r.Set("price", 7)
					assert.True(t, r.Raise("paid"))
					assert.Equal(t, "pay", r.Step())
					assert.Equal(t, "order", r.Blueprint())
					assert.Equal(t, core.OperationFrom(ctx).ID(), r.ID())
					_, awaited := r.Awaited()
					assert.False(t, awaited)
					return nil
				}},
				{Name: "ship", Do: func(_ context.Context, r *molecules.Run) error {
					price, ok := molecules.Value[int](r, "price")
					assert.True(t, ok)
					_, ok = molecules.Value[string](r, "price")
					assert.False(t, ok, "another type")
					assert.Equal(t, map[string]any{"price": 7}, r.Values())
					parcel.Raise(r.Raiser(), "p", price)
					assert.PanicsWithValue(t, "molecules: Set of ValueState, which is the runner's own", func() { r.Set(molecules.ValueState, 1) })
					return nil
				}},
			},
		})
		begun := time.Now()
		sink.RaiseKey("order.placed", "order-42")
		assert.Equal(t, begun, time.Now(), "the raiser does not wait")
		require.NoError(t, r.Flush(t.Context()))

		raised := signals.ExpectExactly(
			molecules.SignalStarted,
			molecules.SignalStepStarted, "paid", molecules.SignalStepCompleted,
			molecules.SignalStepStarted, "parcel", molecules.SignalStepCompleted,
			molecules.SignalCompleted)
		var id core.OperationID
		for _, s := range raised {
			id = s.Operation
			assert.Equal(t, "shop", s.Source)
			assert.Equal(t, []string{"order.placed", s.Name}, s.Path())
			if s.Name != "parcel" {
				assert.Equal(t, "order-42", s.Key)
			}
		}
		assert.Equal(t, molecules.Event{Blueprint: "order", Run: id, Step: "ship"}, raised[4].Payload())
		assert.Equal(t, molecules.Event{Blueprint: "order", Run: id}, raised[7].Payload())
		assert.Equal(t, "p", raised[5].Key)

		op, ok := r.Lookup(id)
		require.True(t, ok)
		assert.Equal(t, "order-42", op.Key)
		assert.Equal(t, core.StatusSucceeded, op.Status)
		assert.Equal(t, time.Second, op.Duration())
		price, _ := core.Value[int](op, "price")
		assert.Equal(t, 7, price, "others see the values too")
		state, _ := core.Value[molecules.State](op, molecules.ValueState)
		assert.Equal(t, molecules.State{Blueprint: "order", Step: "ship"}, state)
		require.NoError(t, r.Close())
	})
}

func TestOneSignalSetsOffAllMatchingBlueprintsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		note := func(_ context.Context, r *molecules.Run) error {
			j.add("%s:%s:%s", r.Blueprint(), r.Trigger.Name, r.Trigger.Key)
			return nil
		}
		r := newRunner(t, sink, molecules.Options{Order: molecules.OrderSerial},
			molecules.Blueprint{Name: "b", On: "x.*", Steps: steps(note)},
			molecules.Blueprint{Name: "a", On: "y, x.1", Steps: steps(note), When: func(s core.Signal) bool { return s.Key != "no" }})
		sink.RaiseKey("x.1", "k")
		sink.RaiseKey("x.2", "l")
		sink.RaiseKey("y", "no")
		sink.RaiseKey("y", "m")
		sink.RaiseKey("z", "n")
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []string{"b:x.1:k", "a:x.1:k", "b:x.2:l", "a:y:m"}, j.take())
		sink.RaiseKey("y", "late")
		assert.Empty(t, j.take())
		assert.Zero(t, r.Stats().Rejected, "it does not even listen")
	})
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		opts molecules.Options
		want string
	}{
		{molecules.Options{}, "+a1 +a2 +b1 -a1 -a2 -b1"},
		{molecules.Options{Order: molecules.OrderPerKey}, "+a1 +b1 -a1 +a2 -b1 -a2"},
		{molecules.Options{Order: molecules.OrderSerial}, "+a1 -a1 +a2 -a2 +b1 -b1"},
		{molecules.Options{MaxConcurrency: 1}, "+a1 -a1 +b1 -b1 +a2 -a2"},
	} {
		t.Run(fmt.Sprint(c.opts.Order, c.opts.MaxConcurrency), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				var j journal
				body := func(_ context.Context, r *molecules.Run) error {
					n, _ := r.Trigger.Arg()
					j.add("+%s%s", r.Trigger.Key, n)
					time.Sleep(time.Second)
					j.add("-%s%s", r.Trigger.Key, n)
					return nil
				}
				r := newRunner(t, sink, c.opts, molecules.Blueprint{Name: "m", On: "go:*", Steps: steps(body)})
				for _, s := range []string{"a1", "a2", "b1"} {
					sink.RaiseKey("go:"+s[1:], s[:1])
					synctest.Wait()
					time.Sleep(time.Nanosecond)
				}
				require.NoError(t, r.Drain(t.Context()))
				assert.Equal(t, c.want, strings.Join(j.take(), " "))
			})
		})
	}
}

// Weak point: steps are enumerated live; adding or removing one during a run fails
// that run.
func TestChangingTheBlueprintChangesNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		given := []molecules.Blueprint{blueprint(j.notes("0", nil), j.notes("1", nil))}
		r := newRunner(t, sink, molecules.Options{}, given...)
		given[0].Steps[1].Do = fail
		given[0].Steps = given[0].Steps[:1]
		given[0].On = "never"
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []string{"0", "1"}, j.take())
	})
}

// Weak point: every finished run stays in a list until dispose.
func TestFinishedRunsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		b := blueprint(quick)
		b.Steps = append(b.Steps, molecules.Step{Name: "awaits", Await: "go2"})
		r := newRunner(t, sink, molecules.Options{MaxTracked: 3}, b)
		for i := range 100 {
			sink.RaiseKey("go", fmt.Sprint(i))
			sink.RaiseKey("go2", fmt.Sprint(i))
			require.NoError(t, r.Flush(t.Context()))
		}
		assert.Equal(t, 3, r.Stats().Tracked)
		assert.Zero(t, molecules.Listed(r))
		assert.Equal(t, uint64(100), r.Stats().Succeeded)
		require.NoError(t, r.Close())
	})
}

// Weak point: no limit; a burst of triggers starts as many runs. Here it is stated
// what becomes of those that are too many.
func TestABurstOfTriggersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		dropped := coretest.Watch(t, sink, molecules.SignalDropped)
		r := newRunner(t, sink, molecules.Options{MaxConcurrency: 2, MaxQueued: 3}, blueprint(takes(time.Minute)))
		for i := range 10 {
			sink.RaiseKey("go", fmt.Sprint(i))
			synctest.Wait()
		}
		s := r.Stats()
		assert.Equal(t, []uint64{2, 3, 5, 5}, []uint64{uint64(s.Running), uint64(s.Pending), s.Enqueued, s.Rejected})
		told := dropped.ExpectExactly(slices.Repeat([]string{molecules.SignalDropped}, 5)...)
		assert.Equal(t, "5", told[0].Key)
		assert.Equal(t, []string{"go", molecules.SignalDropped}, told[0].Path())
		assert.Equal(t, molecules.Event{Blueprint: "m", Err: core.ErrFull}, told[0].Payload())

		var waits []string
		for op := range r.Operations(core.OperationQuery{Status: core.StatusPending}) {
			why, _ := r.Explain(op.ID)
			waits = append(waits, op.Key+": "+string(why.Reasons[0].Kind))
		}
		assert.Equal(t, []string{"2: limit", "3: limit", "4: limit"}, waits)
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, uint64(5), r.Stats().Succeeded)
	})
}

// Weak point: a step that raises the trigger starts the molecule again without
// end.
func TestAStepThatRaisesItsOwnTriggerComesToAnEnd(t *testing.T) {
	again := func(_ context.Context, r *molecules.Run) error { r.Raise("go"); return nil }
	for name, c := range map[string]struct {
		propagation core.Propagation
		runs        uint64
	}{
		"it is its own cause":    {core.Propagation{}, 1},
		"cycles allowed":         {core.Propagation{AllowCycles: true}, 11},
		"cycles allowed, depth3": {core.Propagation{AllowCycles: true, MaxDepth: 3}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := core.NewSink(core.SinkOptions{Propagation: c.propagation})
				r := newRunner(t, sink, molecules.Options{}, blueprint(again))
				sink.Raise("go")
				synctest.Wait()
				assert.Equal(t, c.runs, r.Stats().Succeeded)
				assert.NotZero(t, sink.Stats().Blocked)
				require.NoError(t, r.Close())
			})
		})
	}
}

// Weak point: no cycle guard, also over several molecules and triggers: the depth
// is carried from one to the next.
func TestMoleculesThatSetEachOtherOffComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Propagation: core.Propagation{AllowCycles: true, MaxDepth: 6}})
		raise := func(name string) do {
			return func(_ context.Context, r *molecules.Run) error { r.Raise(name); return nil }
		}
		r := newRunner(t, sink, molecules.Options{},
			molecules.Blueprint{Name: "ping", On: "ping", Steps: steps(raise("pong"))},
			molecules.Blueprint{Name: "pong", On: "pong", Steps: steps(raise("pung"))})
		trigger, err := molecules.NewTrigger(sink, "pung", func(_ context.Context, s core.Signal) error {
			sink.Because(s).Raise("ping")
			return nil
		}, molecules.TriggerOptions{})
		require.NoError(t, err)
		sink.Raise("ping")
		synctest.Wait()
		assert.Equal(t, uint64(5), r.Stats().Succeeded, "ping 0, pong 1, pung 2, ping 3, pong 4, pung 5, ping 6")
		assert.Equal(t, uint64(2), trigger.Stats().Succeeded)
		require.NoError(t, r.Close())
		require.NoError(t, trigger.Close())
	})
}

// Patterns as wide as can be come to rest: neither what is said of runs, nor what
// their operations say without a cause, sets anything off.
func TestAPatternThatMatchesEverythingComesToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		noisy := func(ctx context.Context, _ *molecules.Run) error {
			core.OperationFrom(ctx).Raise("noise")
			panic("on purpose")
		}
		all := func(name string, do do) molecules.Blueprint {
			return molecules.Blueprint{Name: name, On: "*", Steps: steps(do)}
		}
		one := newRunner(t, sink, molecules.Options{}, all("a", noisy), all("b", quick))
		sink.Raise("go")
		synctest.Wait()
		assert.Equal(t, uint64(4), one.Stats().Enqueued, "go sets off a and b; that a panicked is because of go, and sets off both")
		require.NoError(t, one.Drain(t.Context()))

		one = newRunner(t, sink, molecules.Options{}, all("a", quick), all("b", fail))
		two := newRunner(t, sink, molecules.Options{MaxConcurrency: 1, MaxQueued: 1, Name: "two"}, all("c", quick))
		trigger, err := molecules.NewTrigger(sink, "*", func(context.Context, core.Signal) error { return errOnPurpose }, molecules.TriggerOptions{})
		require.NoError(t, err)
		sink.Raise("go")
		synctest.Wait()
		assert.Less(t, one.Stats().Enqueued, uint64(100))
		assert.NotZero(t, trigger.Stats().Failed)
		for _, l := range []core.Lifecycle{one, two, trigger} {
			require.NoError(t, l.Drain(t.Context()))
		}
	})
}

// Weak point: a throwing started handler or condition prevents the run and all
// following blueprints, silently.
func TestAPanickingHandlerOrConditionHindersNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal+","+molecules.SignalDropped)
		sink.Subscribe(molecules.SignalStarted, func(core.Signal) { panic("on purpose") })
		bad, good := blueprint(quick), blueprint(quick)
		bad.Name, bad.When = "bad", func(core.Signal) bool { panic("on purpose") }
		r := newRunner(t, sink, molecules.Options{}, bad, good)
		sink.RaiseKey("go", "k")
		require.NoError(t, r.Drain(t.Context()))
		told := signals.ExpectExactly(molecules.SignalDropped, molecules.SignalCompleted)
		event := told[0].Payload().(molecules.Event)
		assert.Equal(t, "bad", event.Blueprint)
		assert.ErrorContains(t, event.Err, "When panicked")
		assert.Equal(t, uint64(2), sink.Stats().Panics)
	})
}

// Weak point: a throwing completed handler makes failed fire for the same run.
func TestAPanickingCompletedHandlerDoesNotMakeTheRunFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal)
		sink.Subscribe(molecules.SignalCompleted, func(core.Signal) { panic("on purpose") })
		r := newRunner(t, sink, molecules.Options{}, blueprint(quick))
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		signals.ExpectExactly(molecules.SignalCompleted)
		assert.Equal(t, uint64(1), r.Stats().Succeeded)
	})
}

// Weak points: cancellation is reported as failure; a run that is cancelled before
// it starts reports nothing.
func TestCancelledIsNotFailedAndSaidOfRunsThatNeverBegan(t *testing.T) {
	for name, cancel := range map[string]func(*molecules.Runner, core.OperationID){
		"Cancel": func(r *molecules.Runner, id core.OperationID) { r.Cancel(id, errOnPurpose) },
		"Close":  func(r *molecules.Runner, _ core.OperationID) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				signals := coretest.Watch(t, sink, "molecule.*")
				b := blueprint(takes(time.Hour), quick)
				r := newRunner(t, sink, molecules.Options{MaxConcurrency: 1}, b)
				sink.RaiseKey("go", "runs")
				sink.RaiseKey("go", "waits")
				synctest.Wait()
				var ids []core.OperationID
				for op := range r.Operations(core.OperationQuery{}) {
					ids = append(ids, op.ID)
				}
				want := core.ErrClosed
				if name == "Cancel" {
					want = errOnPurpose
				}
				cancel(r, ids[1])
				cancel(r, ids[0])
				synctest.Wait()
				told := signals.Expect(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalCancelled, molecules.SignalCancelled)
				signals.None()
				slices.SortFunc(told[2:], func(a, b core.Signal) int { return strings.Compare(a.Key, b.Key) })
				for i, key := range []string{"runs", "waits"} {
					assert.Equal(t, key, told[2+i].Key)
					event := told[2+i].Payload().(molecules.Event)
					assert.Equal(t, ids[i], event.Run)
					assert.ErrorIs(t, event.Err, want)
				}
				assert.False(t, r.Cancel(ids[0], nil))
				assert.Equal(t, uint64(2), r.Stats().Cancelled)
				assert.Zero(t, molecules.Listed(r))
				require.NoError(t, r.Close())
				signals.None()
			})
		})
	}
}

// What is cancelled after its last step has returned nil is completed, for the
// events as for the books.
func TestACancelledRunWhoseStepsAreAllDoneIsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal)
		r := newRunner(t, sink, molecules.Options{}, blueprint(func(ctx context.Context, _ *molecules.Run) error { <-ctx.Done(); return nil }))
		sink.Raise("go")
		synctest.Wait()
		require.NoError(t, r.Close())
		signals.ExpectExactly(molecules.SignalCompleted)
		assert.Equal(t, uint64(1), r.Stats().Succeeded)
	})
}

func TestACancelledRunGoesNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, "molecule.*")
		var r *molecules.Runner
		var j journal
		cancels := func(_ context.Context, run *molecules.Run) error {
			assert.True(t, r.Cancel(run.ID(), nil))
			return nil
		}
		r = newRunner(t, sink, molecules.Options{}, blueprint(cancels, j.notes("never", nil)))
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		assert.Empty(t, j.take())
		told := signals.ExpectExactly(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalStepCompleted, molecules.SignalCancelled)
		assert.ErrorIs(t, told[3].Payload().(molecules.Event).Err, core.ErrCancelled)
	})
}

// Weak point: disposing from inside a step waits for itself.
func TestCloseFromInsideAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal)
		var r *molecules.Runner
		var j journal
		b := blueprint(quick, func(ctx context.Context, _ *molecules.Run) error {
			time.Sleep(time.Second) // until the other one waits
			assert.NoError(t, r.Close())
			assert.ErrorIs(t, context.Cause(ctx), core.ErrClosed)
			return ctx.Err()
		})
		b.Steps[0].Compensate = j.notes("undone", nil)
		r = newRunner(t, sink, molecules.Options{MaxConcurrency: 1}, b)
		sink.RaiseKey("go", "runs")
		sink.RaiseKey("go", "waits")
		time.Sleep(2 * time.Second)
		require.NoError(t, r.Close())
		told := signals.ExpectExactly(molecules.SignalCancelled, molecules.SignalCancelled)
		assert.Equal(t, "waits", told[0].Key)
		assert.Equal(t, "runs", told[1].Key)
		assert.Equal(t, []string{"undone"}, j.take())
	})
}

// The condition may end it all.
func TestCloseFromInsideWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var r *molecules.Runner
		b := blueprint(quick)
		b.When = func(core.Signal) bool { return assert.NoError(t, r.Close()) }
		r = newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		assert.Equal(t, core.Stats{Limit: 16, Closed: true, Rejected: 1}, r.Stats())
	})
}

// Drain while the runner is used from many goroutines: each run ends once.
func TestEachRunEndsExactlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{Capacity: 10})
		ends := make(map[core.OperationID]int)
		var mu sync.Mutex
		sink.Subscribe(terminal, func(s core.Signal) {
			mu.Lock()
			defer mu.Unlock()
			ends[s.Payload().(molecules.Event).Run]++
		})
		r := newRunner(t, sink, molecules.Options{MaxConcurrency: 4}, blueprint(takes(time.Microsecond), quick))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 50 {
					sink.Raise("go")
					for op := range r.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusRunning}) {
						r.Cancel(op.ID, nil)
						break
					}
					time.Sleep(time.Nanosecond)
				}
			})
		}
		time.Sleep(30 * time.Nanosecond)
		r.Close()
		all.Wait()
		s := r.Stats()
		require.NoError(t, coretest.CheckBooks(s))
		assert.Len(t, ends, int(s.Enqueued))
		for id, n := range ends {
			assert.Equal(t, 1, n, "run %v", id)
		}
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	sink := newSink()
	one := molecules.Step{Name: "one", Do: quick}
	with := func(steps ...molecules.Step) []molecules.Blueprint {
		return []molecules.Blueprint{{Name: "m", On: "go", Steps: steps}}
	}
	for want, c := range map[string]struct {
		blueprints []molecules.Blueprint
		opts       molecules.Options
	}{
		"at least one blueprint":                          {},
		"blueprint 1 has no Name":                         {blueprints: []molecules.Blueprint{{On: "go", Steps: steps(quick)}}},
		`two blueprints "m"`:                              {blueprints: append(with(one), with(one)...)},
		`"m": no signal matches On, which is " ,"`:        {blueprints: []molecules.Blueprint{{Name: "m", On: " ,", Steps: steps(quick)}}},
		`"m": it needs at least one step`:                 {blueprints: with()},
		`"m": step 2 has no Name`:                         {blueprints: with(one, molecules.Step{Do: quick})},
		`"m": there are two steps "one"`:                  {blueprints: with(one, one)},
		`"m": step "x": there must be a function Do`:      {blueprints: with(molecules.Step{Name: "x"})},
		`step "x": an AwaitTimeout, of 1s`:                {blueprints: with(molecules.Step{Name: "x", Do: quick, AwaitTimeout: time.Second})},
		`step "x": a Timeout, of 1s`:                      {blueprints: with(molecules.Step{Name: "x", Await: "y", Timeout: time.Second})},
		`step "x": no signal matches Await, which is ","`: {blueprints: with(molecules.Step{Name: "x", Await: ","})},
		"Options.Order is Order(3)":                       {blueprints: with(one), opts: molecules.Options{Order: 3}},
		"Options.MaxConcurrency is -1":                    {blueprints: with(one), opts: molecules.Options{MaxConcurrency: -1}},
		"MaxQueued":                                       {blueprints: with(one), opts: molecules.Options{MaxQueued: -1}},
		"MaxConcurrency is 2, but with OrderSerial":       {blueprints: with(one), opts: molecules.Options{Order: molecules.OrderSerial, MaxConcurrency: 2}},
	} {
		r, err := molecules.New(sink, c.blueprints, c.opts)
		assert.Nil(t, r)
		assert.ErrorContains(t, err, "molecules: ")
		assert.ErrorContains(t, err, want)
	}
	_, err := molecules.New(nil, with(one), molecules.Options{})
	assert.ErrorContains(t, err, "molecules: there must be a sink")

	r := newRunner(t, sink, molecules.Options{}, with(one)...)
	assert.Equal(t, "molecules", r.Name())
	assert.Same(t, sink, r.Sink())
	assert.Equal(t, 16, r.Stats().Limit)
	require.NoError(t, r.Close())
}

// A step's function can be called without a runner.
func TestARunMadeByHand(t *testing.T) {
	r := &molecules.Run{Trigger: core.Signal{Name: "go", Key: "k"}}
	r.Set("a", 1)
	a, ok := molecules.Value[int](r, "a")
	assert.True(t, ok)
	assert.Equal(t, 1, a)
	assert.False(t, r.Raise("x"))
	assert.False(t, r.RaiseKey("x", "y"))
	assert.Zero(t, r.ID())
	assert.Empty(t, r.Blueprint())
	assert.Empty(t, r.Step())
}
