package molecules_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestCompletedStepsAreCompensatedInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		signals := coretest.Watch(t, sink, "molecule.*")
		b := blueprint(quick, quick, quick, fail, quick)
		for _, i := range []int{0, 2, 3, 4} {
			b.Steps[i].Compensate = j.notes(fmt.Sprint("undo", i), nil)
		}
		r := newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, []string{"undo2", "undo0"}, j.take())
		told := signals.Expect(molecules.SignalStepFailed, molecules.SignalStepCompensated, molecules.SignalStepCompensated, molecules.SignalCompensated, molecules.SignalFailed)
		signals.None()
		assert.Equal(t, "step3", told[0].Payload().(molecules.Event).Step)
		assert.Equal(t, "step2", told[1].Payload().(molecules.Event).Step)
		var failed *molecules.StepError
		require.ErrorAs(t, told[4].Payload().(molecules.Event).Err, &failed)
		assert.Equal(t, molecules.StepError{Blueprint: "m", Step: "step3", Err: errOnPurpose}, *failed)
		assert.EqualError(t, failed, `molecules: step "step3" of "m": failed on purpose`)
		for op := range r.Operations(core.OperationQuery{Status: core.StatusFailed, Pattern: molecules.SignalFailed}) {
			assert.Equal(t, failed, op.Err)
		}
		require.NoError(t, r.Close())
	})
}

// Compensations that go wrong, in whatever way, are told of, joined, and do not
// keep the others from being done.
func TestCompensationsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		signals := coretest.Watch(t, sink, "molecule.comp*, molecule.step.comp*, atom.panic,"+terminal)
		b := blueprint(quick, quick, quick, quick, fail)
		b.Steps[0].Compensate = j.notes("undo0", nil)
		b.Steps[1].Compensate = func(context.Context, *molecules.Run) error { panic("on purpose") }
		b.Steps[2].Compensate = j.notes("undo2", errors.New("cannot undo"))
		b.Steps[3].Compensate = func(context.Context, *molecules.Run) error { runtime.Goexit(); return nil }
		r := newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, []string{"undo2", "undo0"}, j.take())
		told := signals.ExpectExactly(molecules.SignalStepCompleted, molecules.SignalStepCompleted, molecules.SignalStepCompleted, molecules.SignalStepCompleted,
			molecules.SignalCompensationFailed, molecules.SignalCompensationFailed, core.SignalPanic, molecules.SignalCompensationFailed,
			molecules.SignalStepCompensated, molecules.SignalFailed)
		err := told[9].Payload().(molecules.Event).Err
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorAs(t, err, new(*core.PanicError))
		assert.ErrorContains(t, err, `molecules: undoing step "step2" of "m": cannot undo`)
		require.NoError(t, r.Close())
		assert.Equal(t, uint64(1), r.Stats().Failed)
	})
}

func TestAPanicOrGoexitInAStepIsAFailureAndCompensates(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic(errOnPurpose) },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				var j journal
				signals := coretest.Watch(t, sink, "atom.panic, molecule.step.failed,"+terminal)
				b := blueprint(quick, func(context.Context, *molecules.Run) error { end(); return nil }, quick)
				b.Steps[0].Compensate = j.notes("undo", nil)
				r := newRunner(t, sink, molecules.Options{MaxConcurrency: 1}, b)
				for range 2 {
					sink.Raise("go")
					require.NoError(t, r.Flush(t.Context()))
					assert.Equal(t, []string{"undo"}, j.take())
					if name == "panic" {
						told := signals.ExpectExactly(core.SignalPanic, molecules.SignalStepFailed, molecules.SignalFailed)
						assert.ErrorIs(t, told[2].Payload().(molecules.Event).Err, errOnPurpose)
					} else {
						signals.ExpectExactly(molecules.SignalStepFailed, molecules.SignalFailed)
					}
				}
				assert.Equal(t, uint64(2), r.Stats().Failed)
				for op := range r.Operations(core.OperationQuery{}) {
					assert.ErrorAs(t, op.Err, new(*core.PanicError))
				}
				assert.Zero(t, molecules.Listed(r))
				require.NoError(t, r.Close())
			})
		})
	}
}

// A handler that ends the goroutine between two steps is not the end of the second.
func TestGoexitInAHandlerCompensates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		var j journal
		signals := coretest.Watch(t, sink, terminal)
		cancel := sink.Subscribe(molecules.SignalStepStarted, func(s core.Signal) {
			if s.Payload().(molecules.Event).Step == "step1" {
				runtime.Goexit()
			}
		})
		defer cancel()
		b := blueprint(quick, j.notes("never", nil))
		b.Steps[0].Compensate = j.notes("undo", nil)
		r := newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Flush(t.Context()))
		assert.Equal(t, []string{"undo"}, j.take())
		signals.ExpectExactly(molecules.SignalFailed)
		assert.Equal(t, uint64(1), r.Stats().Failed)
		require.NoError(t, r.Close())
	})
}

// One that does so before the run has begun does not keep it from running.
func TestGoexitInAHandlerOfStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal)
		sink.Subscribe(core.SignalStarted, func(core.Signal) { runtime.Goexit() })
		r := newRunner(t, sink, molecules.Options{}, blueprint(quick))
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		signals.ExpectExactly(molecules.SignalCompleted)
		assert.Equal(t, uint64(1), r.Stats().Succeeded)
		assert.Zero(t, molecules.Listed(r))
	})
}

// A cancelled run is undone with a context that is not, for as long as
// CompensateTimeout says.
func TestACancelledRunIsCompensated(t *testing.T) {
	for _, c := range []struct{ given, want time.Duration }{{0, 30 * time.Second}, {time.Second, time.Second}, {-1, 0}} {
		t.Run(fmt.Sprint(c.given), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newSink()
				signals := coretest.Watch(t, sink, terminal+", molecule.compensat*, molecule.step.cancelled, last.words")
				b := blueprint(quick, takes(time.Hour))
				b.Steps[0].Compensate = func(ctx context.Context, r *molecules.Run) error {
					assert.NoError(t, ctx.Err())
					assert.NotNil(t, core.OperationFrom(ctx), "its values are there")
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
				r := newRunner(t, sink, molecules.Options{CompensateTimeout: c.given}, b)
				sink.Raise("go")
				synctest.Wait()
				begun := time.Now()
				require.NoError(t, r.Close())
				assert.Equal(t, c.want, time.Since(begun), "Close waits")
				if c.want == 0 {
					signals.ExpectExactly(molecules.SignalStepCancelled, "last.words", molecules.SignalCompensated, molecules.SignalCancelled)
				} else {
					told := signals.ExpectExactly(molecules.SignalStepCancelled, "last.words", molecules.SignalCompensationFailed, molecules.SignalCancelled)
					err := told[3].Payload().(molecules.Event).Err
					assert.ErrorIs(t, err, core.ErrClosed)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
				assert.Equal(t, uint64(1), r.Stats().Cancelled)
			})
		})
	}
}

func TestStepTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newSink()
		signals := coretest.Watch(t, sink, terminal)
		b := blueprint(takes(time.Second))
		b.Steps[0].Timeout = time.Second + 1
		r := newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		require.NoError(t, r.Drain(t.Context()))
		signals.ExpectExactly(molecules.SignalCompleted)

		b.Steps[0].Timeout = time.Second - 1
		r = newRunner(t, sink, molecules.Options{}, b)
		sink.Raise("go")
		begun := time.Now()
		require.NoError(t, r.Drain(t.Context()))
		assert.Equal(t, time.Second-1, time.Since(begun))
		err := signals.ExpectExactly(molecules.SignalFailed)[0].Payload().(molecules.Event).Err
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, `molecules: step "step0" of "m": the step took longer than 999.999999ms: context deadline exceeded`)
	})
}

// way is how a function of a step ends.
type way int

const (
	missing way = iota // there is none
	works
	fails
	panics
	exits
	cancels // the run is, and the function returns the error of its context
	ignores // the run is, and the function does not care
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
			panic("on purpose")
		case exits:
			runtime.Goexit()
		case cancels:
			(*r).Cancel(run.ID(), nil)
			return ctx.Err() // nil in a compensation
		case ignores:
			(*r).Cancel(run.ID(), nil)
		}
		return nil
	}
}

// plan is a blueprint, and what is to be expected of it, told as simply as can be.
type plan struct{ do, undo []way }

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

func TestRandomRunsAgainstTheModel(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
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
				r *molecules.Runner
				j journal
			)
			defer sink.Subscribe("molecule.*", func(s core.Signal) { j.add("%s", s.Name) })()
			b := molecules.Blueprint{Name: "m", On: "go"}
			for i := range p.do {
				b.Steps = append(b.Steps, molecules.Step{
					Name:       fmt.Sprint(i),
					Do:         p.do[i].function(&r, &j, fmt.Sprint("do", i)),
					Compensate: p.undo[i].function(&r, &j, fmt.Sprint("undo", i)),
				})
			}
			r = newRunner(t, sink, molecules.Options{}, b)
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
			require.NoError(t, r.Close())
		})
	}
}
