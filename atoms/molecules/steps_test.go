package molecules_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ship is a blueprint whose second step awaits "settled".
func ship(j *journal, timeout time.Duration, pay do) molecules.Blueprint {
	return molecules.Blueprint{Name: "order", On: "placed, placed:*", Steps: []molecules.Step{
		{Name: "pay", Do: pay, Compensate: j.notes("refund", nil)},
		{Name: "ship", Await: "settled, settled:*", AwaitTimeout: timeout, Do: func(_ context.Context, r *molecules.Run) error {
			s, ok := r.Awaited()
			j.add("ship %s because of %s %t", s.Key, s.Name, ok)
			return nil
		}},
	}}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		facts := coretest.Watch(t, sink, "molecule.*")
		var j journal
		r := newRunner(sink, molecules.Options{}, ship(&j, 0, quick))
		sink.RaiseKey("settled:1", "a") // too early
		sink.RaiseKey("placed", "a")
		synctest.Wait()
		facts.ExpectExactly(molecules.SignalStarted, molecules.SignalStepStarted, molecules.SignalStepCompleted)
		for op := range r.Operations(core.OperationQuery{}) {
			state := op.Values["molecule"]
			assert.Equal(t, "{Blueprint:order Step:ship Awaiting:settled, settled:* Compensating:false}", fmt.Sprintf("%+v", state))
			why, _ := r.Explain(op.ID)
			assert.Contains(t, why.String(), `its body waits for signal "settled, settled:*" for "a", for 0s, for 1m0s more at most`)
		}
		sink.RaiseKey("settled", "b") // of another key
		sink.Raise("settled")         // without a key
		time.Sleep(time.Minute - 1)
		facts.None()
		sink.RaiseKey("settled:2", "a")
		require.NoError(t, r.Flush(t.Context()))
		facts.ExpectExactly(molecules.SignalStepStarted, molecules.SignalStepCompleted, molecules.SignalCompleted)
		assert.Equal(t, []string{"ship a because of settled:2 true"}, j.take())
		require.NoError(t, r.Close())
	})
}

func TestAwaitTimeout(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, time.Minute}, {time.Second, time.Second}} {
		bubble(t, fmt.Sprint(c.given), func(t *testing.T) {
			sink := newSink()
			facts := coretest.Watch(t, sink, "molecule.step.*, molecule.failed")
			var j journal
			r := newRunner(sink, molecules.Options{}, ship(&j, c.given, quick))
			begun := time.Now()
			sink.RaiseKey("placed", "a")
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, c.want, time.Since(begun))
			assert.Equal(t, []string{"refund"}, j.take())
			raised := facts.Expect(molecules.SignalStepCompleted, molecules.SignalStepFailed, molecules.SignalStepCompensated, molecules.SignalFailed)
			assert.ErrorIs(t, event(raised[3]).Err, core.ErrTimeout)
			assert.ErrorContains(t, event(raised[3]).Err, fmt.Sprintf(`no signal matching "settled, settled:*" with key "a" came within %v`, c.want))
		})
	}
}

// A signal counts even if it comes before the step that awaits it. It also counts if the run is
// still queued, if a handler raises the signal before the runner receives the trigger, and if the
// signal has left the window of the sink.
func TestAwaitedSignalsThatComeEarlyCount(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderNone, molecules.OrderSerial} {
		bubble(t, order.String(), func(t *testing.T) {
			sink := signals.NewSink(signals.SinkOptions{Capacity: 2})
			sink.Subscribe("placed", func(s signals.Signal) {
				if s.Key == "handler" {
					sink.RaiseKey("settled", s.Key)
				}
			})
			var j journal
			pay := func(_ context.Context, r *molecules.Run) error {
				time.Sleep(time.Minute)
				r.Raise("noise")
				return nil
			}
			r := newRunner(sink, molecules.Options{MaxConcurrency: 1, Order: order}, ship(&j, time.Nanosecond, pay))
			sink.RaiseKey("placed", "first")
			synctest.Wait() // the signals of its run do not push out the handler's signal
			sink.RaiseKey("placed", "handler")
			sink.RaiseKey("placed", "queued")
			synctest.Wait()
			sink.RaiseKey("settled", "first")
			sink.RaiseKey("settled", "queued")
			for range 10 {
				sink.Raise("noise")
			}
			require.NoError(t, r.Drain(t.Context()), "queued runs still receive what they await")
			assert.Equal(t, []string{
				"ship first because of settled true", "ship handler because of settled true", "ship queued because of settled true",
			}, j.take())
		})
	}
}

// If the runs of a key do not overlap, a run does not take the signal of the run before it.
func TestAwaitedSignalsOfARunAreNotTakenForThoseOfTheNext(t *testing.T) {
	for _, order := range []molecules.Order{molecules.OrderPerKey, molecules.OrderSerial} {
		bubble(t, order.String(), func(t *testing.T) {
			sink := newSink()
			held := make(chan struct{})
			sink.Subscribe("placed:held", func(signals.Signal) { <-held })
			var j journal
			pay := func(_ context.Context, r *molecules.Run) error {
				n, _ := r.Trigger.Arg()
				j.add("pay %s", n)
				return nil
			}
			r := newRunner(sink, molecules.Options{Order: order}, ship(&j, time.Minute, pay))
			sink.RaiseKey("placed:1", "a")
			sink.RaiseKey("placed:2", "a")
			sink.RaiseKey("placed:3", "a")
			go sink.RaiseKey("placed:held", "a")
			synctest.Wait()
			for op := range r.Operations(core.OperationQuery{Status: core.StatusPending}) {
				r.Cancel(op.ID, nil) // does not change which signals the others receive
				break
			}
			sink.RaiseKey("settled", "a")
			synctest.Wait()
			assert.Equal(t, []string{"pay 1", "ship a because of settled true", "pay 3"}, j.take())
			close(held) // a trigger that comes late does not bring the signal back
			time.Sleep(time.Minute - 1)
			assert.Empty(t, j.take())
			sink.RaiseKey("settled:late", "a")
			synctest.Wait()
			assert.Equal(t, []string{"ship a because of settled:late true", "pay held"}, j.take())
			time.Sleep(time.Hour)
			assert.Equal(t, []string{"refund"}, j.take())
			assert.Zero(t, molecules.Awaiting(r))
			require.NoError(t, r.Close())
		})
	}
}

// Runs without a key overlap with OrderPerKey, so one signal is for all of them.
func TestASignalWithoutAKeyIsForAllRunsWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(sink, molecules.Options{Order: molecules.OrderPerKey}, ship(&j, time.Minute, quick))
		for range 4 {
			sink.Raise("placed")
		}
		synctest.Wait()
		sink.Raise("settled")
		require.NoError(t, r.Drain(t.Context()))
		assert.EqualValues(t, 4, r.Stats().Succeeded)
	})
}

// When the signal of a run's end is raised, the run has ended: later signals are for the next
// run.
func TestAHandlerOfTheEndRaisesForTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		r := newRunner(sink, molecules.Options{Order: molecules.OrderPerKey}, ship(&j, time.Minute, quick))
		molecules.Events.Named(molecules.SignalCompleted).Subscribe(sink, func(s signals.Signal, _ molecules.Event) {
			if r.Stats().Succeeded == 0 {
				sink.RaiseKey("settled:next", s.Key)
			}
		})
		sink.RaiseKey("placed", "a")
		sink.RaiseKey("placed", "a")
		synctest.Wait()
		sink.RaiseKey("settled", "a")
		synctest.Wait()
		assert.Equal(t, []string{"ship a because of settled true", "ship a because of settled:next true"}, j.take())
		require.NoError(t, r.Drain(t.Context()))
	})
}

// Each way to end a runner ends its subscriptions first: signals start nothing, even while the
// runner waits for runs. After that, the sink does not keep the runner alive. A run that has
// begun still receives the signals that it awaits, except after Close.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*molecules.Runner) error{
		"Complete": func(r *molecules.Runner) error { r.Complete(); return nil },
		"Drain":    func(r *molecules.Runner) error { return r.Drain(context.Background()) },
		"Stop":     func(r *molecules.Runner) error { return r.Stop(context.Background()) },
		"Close":    func(r *molecules.Runner) error { return r.Close() },
	} {
		for _, busy := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, busy), func(t *testing.T) {
				sink := newSink()
				var j, ends journal
				sink.Subscribe(terminal, func(s signals.Signal) { ends.add("%s %s", s.Name, s.Key) })
				asked := 0
				b := ship(&j, -1, quick) // its steps await signals without a limit
				b.When = func(signals.Signal) bool { asked++; return true }
				r := newRunner(sink, molecules.Options{MaxConcurrency: 1}, b)
				var want []string
				if busy {
					sink.RaiseKey("placed", "runs")
					time.Sleep(1000 * time.Hour)
					sink.RaiseKey("placed", "waits")
					want = map[string][]string{
						"Complete": {"molecule.completed runs", "molecule.completed waits"},
						"Drain":    {"molecule.completed runs", "molecule.completed waits"},
						"Stop":     {"molecule.cancelled waits", "molecule.completed runs"},
						"Close":    {"molecule.cancelled waits", "molecule.cancelled runs"},
					}[name]
				}
				before := asked
				ended := make(chan error, 1)
				go func() { ended <- end(r) }()
				synctest.Wait()
				sink.RaiseKey("placed", "late")
				sink.RaiseKey("settled", "runs")
				sink.RaiseKey("settled", "waits")
				synctest.Wait()
				require.NoError(t, <-ended)
				got := ends.take()
				if name == "Close" { // Close cancels all runs at once, and each ends on its own goroutine
					slices.Sort(got)
					slices.Sort(want)
				}
				assert.Equal(t, want, got)
				assert.Equal(t, before, asked)
				assert.Zero(t, r.Stats().Rejected)
				assert.Zero(t, molecules.Awaiting(r))

				kept := weak.Make(r)
				r = nil
				time.Sleep(time.Hour) // timers that were stopped may stay until they are due
				runtime.GC()
				assert.Nil(t, kept.Value(), "the sink keeps it alive")
			})
		}
	}
}

// The error of a run is the error of its step, joined with the errors of its compensations.
func TestErrorsOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		facts := coretest.Watch(t, sink, terminal+", molecule.step.failed, molecule.compensation.failed")
		b := blueprint(quick, quick, quick, fail)
		r := newRunner(sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		raised := facts.ExpectExactly(molecules.SignalStepFailed, molecules.SignalFailed)
		failed := &molecules.StepError{Blueprint: "m", Step: "step3", Err: errOnPurpose}
		assert.Equal(t, molecules.Event{Blueprint: "m", Run: raised[0].Operation, Step: "step3", Err: failed}, event(raised[0]))
		assert.Equal(t, molecules.Event{Blueprint: "m", Run: raised[0].Operation, Err: failed}, event(raised[1]))
		assert.EqualError(t, failed, `molecules: step "step3" of "m": failed on purpose`)
		for op := range r.Operations(core.OperationQuery{Status: core.StatusFailed, Pattern: molecules.SignalFailed}) {
			assert.Equal(t, failed, op.Err)
		}

		b.Steps[0].Compensate = j.notes("undo0", nil)
		b.Steps[1].Compensate = func(context.Context, *molecules.Run) error { panic("on purpose") }
		b.Steps[2].Compensate = j.notes("undo2", errors.New("cannot undo"))
		r = newRunner(sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, []string{"undo2", "undo0"}, j.take())
		raised = facts.ExpectExactly(
			molecules.SignalStepFailed, molecules.SignalCompensationFailed, molecules.SignalCompensationFailed, molecules.SignalFailed)
		assert.EqualError(t, event(raised[1]).Err, `molecules: compensation of step "step2" of "m": cannot undo`)
		err := event(raised[3]).Err
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorIs(t, err, event(raised[1]).Err)
		assert.ErrorAs(t, err, new(*core.PanicError))
	})
}

// If a handler ends the goroutine of the body, the run ends and is compensated.
func TestGoexitInAHandler(t *testing.T) {
	for signal, want := range map[string][]string{
		molecules.SignalStarted:       {molecules.SignalFailed},
		molecules.SignalStepStarted:   {molecules.SignalFailed},
		molecules.SignalStepCompleted: {"do", "undo", molecules.SignalFailed},
	} {
		bubble(t, signal, func(t *testing.T) {
			sink := newSink()
			var j journal
			sink.Subscribe(signal, func(signals.Signal) { runtime.Goexit() })
			sink.Subscribe(terminal, func(s signals.Signal) { j.add("%s", s.Name) })
			b := blueprint(j.notes("do", nil))
			b.Steps[0].Compensate = j.notes("undo", nil)
			r := newRunner(sink, molecules.Options{}, b)
			sink.Raise("go")
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, want, j.take())
			assert.Zero(t, r.Stats().Succeeded)
		})
	}
}

// A cancelled run is compensated. The context is not cancelled, and CompensateTimeout limits it.
// Close waits for the compensation.
func TestACancelledRunIsCompensated(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, 30 * time.Second}, {time.Second, time.Second}, {-1, 0}} {
		bubble(t, fmt.Sprint(c.given), func(t *testing.T) {
			sink := newSink()
			facts := coretest.Watch(t, sink, terminal+", molecule.compensat*, molecule.step.cancelled, last.words")
			b := blueprint(quick, takes(time.Hour))
			b.Steps[0].Compensate = func(ctx context.Context, r *molecules.Run) error {
				assert.NoError(t, ctx.Err())
				assert.Equal(t, r.ID(), core.OperationFrom(ctx).ID())
				assert.True(t, r.Raise("last.words"))
				begun := time.Now()
				if deadline, ok := ctx.Deadline(); c.want == 0 {
					assert.False(t, ok)
				} else {
					assert.Equal(t, c.want, deadline.Sub(begun))
					<-ctx.Done()
					assert.Equal(t, c.want, time.Since(begun))
				}
				return ctx.Err()
			}
			r := newRunner(sink, molecules.Options{CompensateTimeout: c.given}, b)
			sink.Raise("go")
			synctest.Wait()
			begun := time.Now()
			require.NoError(t, r.Close())
			assert.Equal(t, c.want, time.Since(begun))
			if c.want == 0 {
				facts.ExpectExactly(molecules.SignalStepCancelled, "last.words", molecules.SignalCompensated, molecules.SignalCancelled)
			} else {
				raised := facts.ExpectExactly(molecules.SignalStepCancelled, "last.words", molecules.SignalCompensationFailed, molecules.SignalCancelled)
				assert.ErrorIs(t, event(raised[3]).Err, core.ErrClosed)
				assert.ErrorIs(t, event(raised[3]).Err, context.DeadlineExceeded)
			}
			assert.Equal(t, uint64(1), r.Stats().Cancelled)
		})
	}
}

func TestStepTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		b := blueprint(takes(time.Second), takes(time.Second))
		b.Steps[0].Timeout, b.Steps[1].Timeout = time.Second+1, time.Second-1
		r := newRunner(sink, molecules.Options{}, b)
		sink.Raise("go")
		begun := time.Now()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, 2*time.Second-1, time.Since(begun))
		for op := range r.Operations(core.OperationQuery{}) {
			assert.ErrorIs(t, op.Err, context.DeadlineExceeded)
			assert.EqualError(t, op.Err, `molecules: step "step1" of "m": the step took longer than 999.999999ms: context deadline exceeded`)
		}
	})
}

// way is how a function of a step ends.
type way int

const (
	missing way = iota // there is no function
	works
	fails
	panics
	exits
	cancels // it cancels the run and returns the error of its context
	ignores // it cancels the run and returns nil
	ways
)

func (w way) function(r **molecules.Runner, j *journal, what string) do {
	if w == missing {
		return nil
	}
	return func(ctx context.Context, run *molecules.Run) error {
		j.add("%s", what)
		switch w {
		case fails:
			return errOnPurpose
		case panics:
			panic(errOnPurpose)
		case exits:
			runtime.Goexit()
		case cancels:
			(*r).Cancel(run.ID(), nil)
			return ctx.Err() // nil in a compensation, whose context has not ended
		case ignores:
			(*r).Cancel(run.ID(), nil)
		}
		return nil
	}
}

// plan describes a blueprint: it says how its functions end.
type plan struct{ do, undo []way }

// expect is the model: the signals and calls of a run, in order.
func (p plan) expect() (lines []string) {
	add := func(s string, args ...any) { lines = append(lines, fmt.Sprintf(s, args...)) }
	var done []int
	cancelled := false
	add("molecule.started")
	for i, w := range p.do {
		if cancelled {
			break
		}
		add("molecule.step.started")
		add("do%d", i)
		cancelled = w == cancels || w == ignores
		if w == works || w == ignores {
			done = append(done, i)
			add("molecule.step.completed")
			continue
		}
		if w == panics {
			add("operation.panicked")
		}
		if w == cancels {
			add("molecule.step.cancelled")
		} else {
			add("molecule.step.failed")
		}
		break
	}
	if len(done) == len(p.do) {
		add("molecule.completed")
		return lines
	}
	undone, well := 0, true
	for k := len(done) - 1; k >= 0; k-- {
		w := p.undo[done[k]]
		if w == missing {
			continue
		}
		add("undo%d", done[k])
		undone++
		cancelled = cancelled || w == cancels || w == ignores
		if w == panics {
			add("operation.panicked")
		}
		if w == fails || w == panics || w == exits {
			well = false
			add("molecule.compensation.failed")
		} else {
			add("molecule.step.compensated")
		}
	}
	if undone > 0 && well {
		add("molecule.compensated")
	}
	if cancelled {
		add("molecule.cancelled")
	} else {
		add("molecule.failed")
	}
	return lines
}

// fails returns the end of the first step that fails. If no step fails, it returns works.
func (p plan) fails() way {
	for _, w := range p.do {
		if w != works {
			return w
		}
	}
	return works
}

func TestRandomRunsAgainstTheModel(t *testing.T) {
	rounds := 200
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 2000
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		var p plan
		for range 1 + random.IntN(6) {
			do := works // mostly
			if random.IntN(3) == 0 {
				do = fails + way(random.IntN(int(ways-fails)))
			}
			p.do = append(p.do, do)
			p.undo = append(p.undo, way(random.IntN(int(ways))))
		}
		synctest.Test(t, func(t *testing.T) {
			sink := newSink()
			var (
				r   *molecules.Runner
				j   journal
				err error
			)
			sink.Subscribe("molecule.*, operation.panicked", func(s signals.Signal) { j.add("%s", s.Name) })
			sink.Subscribe(terminal, func(s signals.Signal) { err = event(s).Err })
			b := molecules.Blueprint{Name: "m", On: "go"}
			for i := range p.do {
				b.Steps = append(b.Steps, molecules.Step{
					Name:       fmt.Sprint(i),
					Do:         p.do[i].function(&r, &j, fmt.Sprint("do", i)),
					Compensate: p.undo[i].function(&r, &j, fmt.Sprint("undo", i)),
				})
			}
			r = newRunner(sink, molecules.Options{}, b)
			sink.Raise("go")
			require.NoError(t, r.Flush(t.Context()))
			want := p.expect()
			require.Equal(t, want, j.take(), "%v", p)
			status := map[string]core.Status{
				"molecule.completed": core.StatusSucceeded,
				"molecule.failed":    core.StatusFailed,
				"molecule.cancelled": core.StatusCancelled,
			}[want[len(want)-1]]
			for op := range r.Operations(core.OperationQuery{}) {
				require.Equal(t, status, op.Status, "%v", p)
			}
			switch p.fails() {
			case works:
				require.NoError(t, err)
			case fails:
				require.ErrorIs(t, err, errOnPurpose)
			case panics, exits:
				require.ErrorAs(t, err, new(*core.PanicError))
			}
			require.NoError(t, r.Close())
		})
	}
}
