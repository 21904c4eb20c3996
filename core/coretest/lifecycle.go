package coretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Body is a piece of work. It is the item type for a generic subject.
type Body func(ctx context.Context) error

// Run runs a body: the work function of a subject whose items are bodies.
func Run(ctx context.Context, body Body) error { return body(ctx) }

// A Subject is what [RunLifecycle] tests. The first two fields are required; the other
// promises are not tested if their fields are nil.
type Subject struct {
	core.Lifecycle

	// Submit accepts a body, which runs with a context that Close cancels, or
	// returns an error. It may wait for room.
	Submit func(ctx context.Context, body Body) error

	// Pause keeps accepted bodies from starting until Resume.
	Pause, Resume func()

	// Sink is a sink whose handlers may close the subject.
	Sink *signals.Sink

	// Stats are the counters, for the accounting law.
	Stats func() core.Stats

	// WaitIdle waits until nothing is pending and nothing runs.
	WaitIdle func(ctx context.Context) error

	// Told returns how often [core.Options].OnDone has been called. It needs Stats.
	Told func() uint64
}

// RunLifecycle runs the lifecycle suite, each case as a subtest in its own bubble. Factory makes
// a subject that is open and idle. It is called inside the bubble of each case, at least once.
// A bubble ends only when all its goroutines have ended. So a goroutine that the
// subject leaves behind fails the case that has started it.
func RunLifecycle(t *testing.T, factory func(testing.TB) Subject) {
	t.Helper()
	for _, c := range lifecycleCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, factory) })
		})
	}
}

// lifecycleCase is one promise and its test.
type lifecycleCase struct {
	name  string
	rule  string // printed when the promise is broken
	needs func(Subject) bool
	scene func(x *exam)
}

func canPause(s Subject) bool { return s.Pause != nil && s.Resume != nil }
func hasSink(s Subject) bool  { return s.Sink != nil }
func hasIdle(s Subject) bool  { return s.WaitIdle != nil }

func (c lifecycleCase) run(t testing.TB, factory func(testing.TB) Subject) {
	x := newExam(t, c.rule, factory)
	if c.needs != nil && !c.needs(x.Subject) {
		x.finish()
		t.Skip("the subject does not offer what this case needs")
	}
	defer x.finish()
	c.scene(x)
}

var lifecycleCases = append(waitCases(), []lifecycleCase{{
	name: "close unused",
	rule: "Close of something that was never used returns nil at once",
	scene: func(x *exam) {
		begun := time.Now()
		x.call("Close", x.close).returns(nil)
		took := time.Since(begun)
		x.violatedIf(took != 0, "Close took %v of the bubble's time, want none", took)
	},
}, {
	name: "drain",
	rule: "Drain may be called many times, from many goroutines; each returns when all that was accepted is finished, and not before; a late item gets core.ErrClosed",
	scene: func(x *exam) {
		b := x.block()
		after, body := flag()
		x.submitAside("an item behind it", body)
		x.many("Drain", x.Drain, b)
		x.violatedIf(!after.Load(), "Drain returned before the last accepted body had run")
		x.call("late Drain", x.Drain).returns(nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name: "complete twice",
	rule: "Complete may be called many times; what was accepted still runs, and a late item gets core.ErrClosed meanwhile",
	scene: func(x *exam) {
		b := x.block()
		for range 3 {
			x.call("Complete", x.complete).returns(nil)
		}
		x.call("Submit", x.late).returns(core.ErrClosed)
		b.release()
		x.call("Drain", x.Drain).returns(nil)
		b.mustHaveEnded("Drain")
	},
}, {
	name: "any call after close",
	rule: "Close may be called many times and returns nil; after it the other calls return at once, without error, and a late item gets core.ErrClosed",
	scene: func(x *exam) {
		x.submit(quick)
		for range 3 {
			x.call("Close", x.close).returns(nil)
		}
		x.call("Complete", x.complete).returns(nil)
		x.call("Flush", x.Flush).returns(nil)
		x.call("Drain", x.Drain).returns(nil)
		x.call("Stop", x.Stop).returns(nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name: "stop",
	rule: "Stop waits for the bodies that run, which go on; items that wait, and late ones, never run and are accounted for as cancelled",
	scene: func(x *exam) {
		let := make(chan struct{})
		var begun, cancelled atomic.Int64
		submits := x.flood(func(ctx context.Context) error {
			begun.Add(1)
			select {
			case <-let:
			case <-x.over:
			case <-ctx.Done():
				cancelled.Add(1)
			}
			return nil
		})
		before := x.stats()
		stop := x.call("Stop", x.Stop)
		stop.stillWaits()
		x.call("Submit", x.late).returns(core.ErrClosed)
		x.violatedIf(cancelled.Load() != 0, "Stop cancelled %d bodies that ran, want none", cancelled.Load())
		close(let)
		stop.returns(nil)
		for _, s := range submits {
			s.returns(nil, core.ErrClosed)
		}
		time.Sleep(time.Hour)
		after := x.stats()
		ended := after.Succeeded + after.Failed
		wrong := x.Stats != nil && begun.Load() != int64(ended)
		x.violatedIf(wrong, "%d bodies ran, but %d have ended by themselves, in %v", begun.Load(), ended, after)
		got := after.Cancelled - before.Cancelled
		x.violatedIf(got != uint64(before.Pending), "Stop cancelled %d items, want the %d that were pending", got, before.Pending)
	},
}, {
	name: "stop twice",
	rule: "Stop may be called many times, and beside Drain; each returns when what runs is finished",
	scene: func(x *exam) {
		b := x.block()
		calls := []*call{x.call("Drain", x.Drain), x.call("Stop", x.Stop), x.call("second Stop", x.Stop)}
		synctest.Wait()
		calls = append(calls, x.call("late Drain", x.Drain))
		for _, c := range calls {
			c.stillWaits()
		}
		b.release()
		for _, c := range calls {
			c.returns(nil)
		}
		b.mustHaveEnded("Stop")
		x.call("third Stop", x.Stop).returns(nil)
	},
}, {
	name: "flush",
	rule: "Flush waits for what was accepted before it, beside other Flushes; the intake stays open, and later items do not prolong it",
	scene: func(x *exam) {
		x.call("Flush of nothing", x.Flush).returns(nil)
		first := x.block()
		early := x.call("early Flush", x.Flush)
		early.stillWaits()
		second, body := x.newBlocked(false)
		x.submitAside("a second item", body)
		late := x.call("late Flush", x.Flush)
		late.stillWaits()
		first.release()
		early.returns(nil)
		first.mustHaveEnded("early Flush")
		late.stillWaits()
		second.mustStillRun("a Flush that does not wait for it")
		second.release()
		late.returns(nil)
		second.mustHaveEnded("late Flush")
		x.submit(quick)
	},
}, {
	name: "close cancels what runs",
	rule: "Close cancels the contexts of running bodies, with core.ErrClosed as the cause, and waits for the bodies",
	scene: func(x *exam) {
		var cause atomic.Value
		var ended atomic.Bool
		started := make(chan error)
		x.submit(func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			time.Sleep(time.Minute) // tidying up takes time
			ended.Store(true)
			return ctx.Err()
		})
		x.receive("the start of the body", started).returns(nil)
		x.call("Close", x.close).returns(nil)
		x.violatedIf(!ended.Load(), "Close returned while a body was still running")
		got, _ := cause.Load().(error)
		x.violatedIf(!errors.Is(got, core.ErrClosed), "the body's context ended with the cause %v, want %v", got, core.ErrClosed)
	},
}, {
	name: "close from many goroutines",
	rule: "every Close returns only when no body runs any more; an item that comes meanwhile gets core.ErrClosed at once",
	scene: func(x *exam) {
		b := x.stubborn()
		closing := x.call("first Close", x.close)
		closing.stillWaits()
		x.call("Submit", x.late).returns(core.ErrClosed)
		x.many("Close", x.close, b)
		closing.returns(nil)
	},
}, {
	name: "items wait for room while closing",
	rule: "items that wait for room when Close comes get core.ErrClosed; nothing runs after Close",
	scene: func(x *exam) {
		var running, ran atomic.Int64
		submits := x.flood(func(ctx context.Context) error {
			ran.Add(1)
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		})
		x.call("Close", x.close).returns(nil)
		x.violatedIf(running.Load() != 0, "%d bodies were running when Close returned, want none", running.Load())
		before, accepted := ran.Load(), int64(0)
		for _, s := range submits {
			s.returns(nil, core.ErrClosed)
			if s.err == nil {
				accepted++
			}
		}
		time.Sleep(time.Hour)
		after := ran.Load()
		x.violatedIf(after != before, "%d bodies were started after Close had returned, want none", after-before)
		x.violatedIf(after > accepted, "%d bodies were run, but only %d accepted", after, accepted)
	},
}, {
	name: "close from a body",
	rule: "Close called by a body does not wait for that body; it ends the intake",
	scene: func(x *exam) {
		x.fromBody("Close", x.close, nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
		x.call("Close", x.close).returns(nil)
	},
}, {
	name: "complete from a body",
	rule: "Complete may be called by a body",
	scene: func(x *exam) {
		x.fromBody("Complete", x.complete, nil)
		x.call("Drain", x.Drain).returns(nil)
	},
}, {
	name:  "wait until idle",
	rule:  "WaitIdle waits for what was accepted, and for what bodies submit meanwhile; the intake stays open",
	needs: hasIdle,
	scene: func(x *exam) {
		x.call("WaitIdle", x.WaitIdle).returns(nil)
		let := make(chan struct{})
		child, body := x.newBlocked(false)
		x.submit(func(ctx context.Context) error {
			<-let
			return x.Submit(ctx, body)
		})
		idle := x.call("WaitIdle", x.WaitIdle)
		idle.stillWaits()
		close(let)
		idle.stillWaits()
		child.mustStillRun("a WaitIdle that waits for it")
		child.release()
		idle.returns(nil)
		child.mustHaveEnded("WaitIdle")
		x.submit(quick)
	},
}, {
	name:  "close from a handler",
	rule:  "a signal handler may call Close, also for a signal of a body; it does not wait for bodies",
	needs: hasSink,
	scene: func(x *exam) {
		raise := x.closingSignal()
		x.fromBody("Raise", raise, nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name:  "close from a handler, beside a body",
	rule:  "a handler that calls Close while a body runs does not hold up the goroutine that raises the signal",
	needs: hasSink,
	scene: func(x *exam) {
		raise := x.closingSignal()
		b := x.stubborn()
		x.call("Raise", raise).returns(nil)
		b.mustStillRun("a Close that does not wait")
		b.release()
	},
}, {
	name:  "drain while paused",
	rule:  "Drain while paused waits for Resume, ends with its context, and loses nothing",
	needs: canPause,
	scene: func(x *exam) {
		x.Pause()
		x.Pause()
		ran, body := flag()
		x.submit(body)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		x.call("Drain with a deadline", func(context.Context) error { return x.Drain(ctx) }).returns(context.DeadlineExceeded)
		drain := x.call("Drain", x.Drain)
		drain.stillWaits()
		x.violatedIf(ran.Load(), "a body was started while paused")
		x.Resume()
		drain.returns(nil)
		x.violatedIf(!ran.Load(), "Drain returned before the body had run")
	},
}, {
	name:  "close while paused",
	rule:  "Close while paused returns; accepted items do not run",
	needs: canPause,
	scene: func(x *exam) { x.endPaused("Close", x.close) },
}, {
	name:  "stop while paused",
	rule:  "Stop while paused returns when running bodies have ended; accepted items do not run",
	needs: canPause,
	scene: func(x *exam) { x.endPaused("Stop", x.Stop) },
}, {
	name: "bodies fail and panic",
	rule: "a body that fails or panics hinders neither others nor Flush, Drain and Close",
	scene: func(x *exam) {
		x.submit(func(context.Context) error { return errors.New("failed on purpose") })
		x.submit(func(context.Context) error { panic("panicked on purpose") })
		x.call("Flush", x.Flush).returns(nil)
		ran, body := flag()
		x.submit(body)
		x.call("Drain", x.Drain).returns(nil)
		x.violatedIf(!ran.Load(), "a body that was accepted after one that panicked did not run")
	},
}, {
	name: "everything at once",
	rule: "10 goroutines x 50 random calls: each returns, with an answer from the common vocabulary, and nothing is left",
	scene: func(x *exam) {
		x.everythingAtOnce(0)
		for seed := uint64(1); seed < uint64(long.Often(5, 2)); seed++ {
			other := newExam(x.TB, x.rule, x.factory)
			other.everythingAtOnce(seed)
			other.finish()
		}
	},
}}...)

// wait is a method that waits for bodies.
type wait = func(context.Context) error

// waits are the calls that wait for bodies.
var waits = []struct {
	name  string
	of    func(*exam) wait
	ends  bool // the call ends the intake
	needs func(Subject) bool
}{
	{"Drain", func(x *exam) wait { return x.Drain }, true, nil},
	{"Stop", func(x *exam) wait { return x.Stop }, true, nil},
	{"Flush", func(x *exam) wait { return x.Flush }, false, nil},
	{"WaitIdle", func(x *exam) wait { return x.WaitIdle }, false, hasIdle},
}

// waitCases are the cases for each of the waits.
func waitCases() (cases []lifecycleCase) {
	for _, w := range waits {
		cases = append(cases, lifecycleCase{
			name:  "deadline passes during " + w.name,
			rule:  "when its context ends " + w.name + " returns the cause; running bodies go on, Drain and Stop have ended the intake",
			needs: w.needs,
			scene: func(x *exam) {
				b := x.block()
				x.givesUp(w.name, w.of(x), b)
				if w.ends {
					x.call("Submit", x.late).returns(core.ErrClosed)
				} else {
					x.submitAside("an item after the "+w.name, quick)
				}
				b.release()
				x.call("second "+w.name, w.of(x)).returns(nil)
				b.mustHaveEnded("second " + w.name)
			},
		}, lifecycleCase{
			name:  "Close during " + w.name,
			rule:  "Close during a " + w.name + " cancels what it waits for; both return nil",
			needs: w.needs,
			scene: func(x *exam) {
				b := x.block()
				waits := x.call(w.name, w.of(x))
				waits.stillWaits()
				x.call("Close", x.close).returns(nil)
				waits.returns(nil)
				b.mustHaveEnded("Close")
			},
		}, lifecycleCase{
			name:  w.name + " from a body",
			rule:  w.name + " called by a body, with its context or another, returns core.ErrWouldDeadlock and changes nothing",
			needs: w.needs,
			scene: func(x *exam) {
				x.fromBody(w.name+"(its context)", w.of(x), core.ErrWouldDeadlock)
				other := func(context.Context) error { return w.of(x)(context.Background()) }
				x.fromBody(w.name+"(another context)", other, core.ErrWouldDeadlock)
				x.submit(quick)
			},
		})
	}
	return cases
}

func quick(context.Context) error { return nil }

// flag returns a body that sets a flag.
func flag() (*atomic.Bool, Body) {
	ran := new(atomic.Bool)
	return ran, func(context.Context) error { ran.Store(true); return nil }
}

// patience is how long, in the bubble's time, a call that must return may take. The subject
// may first wait for an interval or back off.
const patience = 24 * time.Hour

// exam is one run of a case.
type exam struct {
	testing.TB
	Subject
	rule    string
	factory func(testing.TB) Subject
	over    chan struct{} // closed at the end, so that blocked bodies return
}

func newExam(t testing.TB, rule string, factory func(testing.TB) Subject) *exam {
	x := &exam{TB: t, rule: rule, factory: factory, over: make(chan struct{})}
	x.Subject = factory(t)
	if x.Lifecycle == nil || x.Subject.Submit == nil {
		t.Fatal("coretest: a Subject needs a Lifecycle and Submit")
	}
	return x
}

// finish closes the subject, even when the case has failed, and checks its counters.
func (x *exam) finish() {
	x.Helper()
	close(x.over)
	err := x.call("the last Close", x.close).wait()
	x.violatedIf(err != nil, "the last Close: got %v, want nil", err)
	synctest.Wait()
	if x.Stats == nil {
		return
	}
	s := x.Stats()
	err = CheckBooks(s)
	x.violatedIf(err != nil, "%v", err)
	x.violatedIf(s.Pending+s.Running != 0 || !s.Closed, "after Close: got %v, want it closed, and nothing pending and running", s)
	if x.Told != nil && x.Told() != s.Enqueued {
		x.violated("OnDone was called %d times for %d items", x.Told(), s.Enqueued)
	}
}

// CheckBooks returns an error if counters break the accounting law: every accepted item is
// in exactly one place.
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled + Refused + Dropped
func CheckBooks(s core.Stats) error {
	sum := uint64(s.Pending) + uint64(s.Running) + uint64(s.Suspended) + s.Succeeded + s.Failed + s.Cancelled + s.Refused + s.Dropped
	if s.Pending < 0 || s.Running < 0 || s.Suspended < 0 || s.Enqueued != sum {
		return fmt.Errorf("coretest: Enqueued is %d, but the states of all items add up to %d, in %v", s.Enqueued, sum, s)
	}
	return nil
}

func (x *exam) violated(format string, args ...any) {
	x.Helper()
	x.Errorf("%s\nrule: %s", fmt.Sprintf(format, args...), x.rule)
}

func (x *exam) violatedIf(wrong bool, format string, args ...any) {
	x.Helper()
	if wrong {
		x.violated(format, args...)
	}
}

func (x *exam) close(context.Context) error    { return x.Close() }
func (x *exam) complete(context.Context) error { x.Complete(); return nil }

// stats returns the counters of the subject, or nil.
func (x *exam) stats() (s core.Stats) {
	if x.Stats != nil {
		s = x.Stats()
	}
	return s
}

// late submits a body that should not be accepted.
func (x *exam) late(ctx context.Context) error {
	return x.Submit(ctx, func(context.Context) error {
		x.violated("a body ran that came too late")
		return nil
	})
}

// submits is a call that submits a body.
func (x *exam) submits(what string, body Body) *call {
	return x.call(what, func(ctx context.Context) error { return x.Submit(ctx, body) })
}

// submit submits a body that must be accepted.
func (x *exam) submit(body Body) {
	x.Helper()
	x.submits("Submit", body).returns(nil)
}

// submitAside submits a body while others run, so it may have to wait for room.
func (x *exam) submitAside(what string, body Body) {
	x.Helper()
	c := x.submits("Submit of "+what, body)
	if !c.isOver() {
		x.Fatalf("coretest: Submit of %s waits for room; the Subject must have room for two items", what)
	}
	c.returns(nil)
}

// call is a call on its own goroutine, so that a call that hangs is found.
type call struct {
	x    *exam
	what string
	err  error
	done chan struct{}
}

func (x *exam) call(what string, fn func(context.Context) error) *call {
	c := &call{x: x, what: what, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() {
			if r := recover(); r != nil {
				c.err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		c.err = fn(context.Background())
	}()
	return c
}

var errHangs = fmt.Errorf("it did not return within %v of the bubble's time", patience)

func (c *call) wait() error {
	select {
	case <-c.done:
		return c.err
	case <-time.After(patience):
		return errHangs
	}
}

// returns checks that the call returns, and that it returns the wanted error.
func (c *call) returns(want ...error) {
	c.x.Helper()
	if got := c.wait(); got == errHangs {
		c.x.violated("%s: %v", c.what, got)
		c.x.FailNow()
	} else {
		c.x.checkError(c.what, got, want)
	}
}

// checkError checks that an error matches one of the wanted errors.
func (x *exam) checkError(what string, got error, want []error) {
	x.Helper()
	is := func(w error) bool { return errors.Is(got, w) }
	x.violatedIf(!slices.ContainsFunc(want, is), "%s: got error %v, want %v", what, got, errors.Join(want...))
}

// stillWaits checks that the call has not returned when all goroutines block.
func (c *call) stillWaits() {
	c.x.Helper()
	c.x.violatedIf(c.isOver(), "%s returned, want it to wait", c.what)
}

// isOver reports whether the call has returned when all goroutines block.
func (c *call) isOver() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// blocked is a body that runs until it is released or, unless it is stubborn,
// cancelled.
type blocked struct {
	x       *exam
	started chan error // closed
	let     chan struct{}
	ended   atomic.Bool
}

func (x *exam) newBlocked(stubborn bool) (*blocked, Body) {
	b := &blocked{x: x, started: make(chan error), let: make(chan struct{})}
	return b, func(ctx context.Context) error {
		close(b.started)
		cancelled := ctx.Done()
		if stubborn {
			cancelled = nil
		}
		select {
		case <-b.let:
		case <-x.over:
		case <-cancelled:
		}
		b.ended.Store(true)
		return ctx.Err()
	}
}

// block submits a body that runs until it is released or cancelled, and waits until the
// body has started.
func (x *exam) block() *blocked { return x.start(false) }

// stubborn is like block, but its body ignores cancellation.
func (x *exam) stubborn() *blocked { return x.start(true) }

func (x *exam) start(stubborn bool) *blocked {
	x.Helper()
	b, body := x.newBlocked(stubborn)
	x.submit(body)
	x.receive("the start of the body", b.started).returns(nil)
	return b
}

func (b *blocked) release() { close(b.let) }

func (b *blocked) mustHaveEnded(before string) {
	b.x.Helper()
	b.x.violatedIf(!b.ended.Load(), "%s returned before the body had ended", before)
}

func (b *blocked) mustStillRun(despite string) {
	b.x.Helper()
	synctest.Wait()
	b.x.violatedIf(b.ended.Load(), "the body was ended by %s", despite)
}

// many makes a call, which waits for b, from many goroutines.
func (x *exam) many(what string, fn func(context.Context) error, b *blocked) {
	x.Helper()
	var calls []*call
	for range 10 {
		calls = append(calls, x.call(what, fn))
	}
	for _, c := range calls {
		c.stillWaits()
	}
	b.release()
	for _, c := range calls {
		c.returns(nil)
	}
	b.mustHaveEnded(what)
}

// flood submits a body a hundred times, even if there is no room.
func (x *exam) flood(body Body) (submits []*call) {
	for range 100 {
		submits = append(submits, x.submits("Submit", body))
	}
	synctest.Wait()
	return submits
}

// givesUp makes a call that waits for b with a deadline, and lets the deadline pass.
func (x *exam) givesUp(what string, fn func(context.Context) error, b *blocked) {
	x.Helper()
	patience := errors.New("out of patience")
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, patience)
	defer cancel()
	begun := time.Now()
	x.call(what, func(context.Context) error { return fn(ctx) }).returns(patience)
	took := time.Since(begun)
	x.violatedIf(took != time.Second, "%s returned after %v, want the second of its context", what, took)
	b.mustStillRun("a " + what + " that gave up")
}

// endPaused ends the subject while it is paused, with an item that waits.
func (x *exam) endPaused(what string, fn func(context.Context) error) {
	x.Helper()
	x.Pause()
	ran, body := flag()
	x.submit(body)
	x.call(what, fn).returns(nil)
	x.Resume()
	synctest.Wait()
	x.violatedIf(ran.Load(), "a body was run after %s", what)
}

// fromBody makes a call from inside a body and checks what it returns.
func (x *exam) fromBody(what string, fn func(ctx context.Context) error, want error) {
	x.Helper()
	done := make(chan error, 1)
	x.submit(func(ctx context.Context) error {
		done <- fn(ctx)
		return nil
	})
	x.receive(what+" from a body", done).returns(want)
}

// receive is a call that returns what a body sends.
func (x *exam) receive(what string, sent <-chan error) *call {
	return x.call(what, func(context.Context) error {
		select {
		case err := <-sent:
			return err
		case <-x.over:
			return nil
		}
	})
}

// closingSignal subscribes a handler that closes the subject, and returns a function that
// raises its signal. The handler stays subscribed, because to unsubscribe would wait for a
// handler that hangs.
func (x *exam) closingSignal() (raise func(context.Context) error) {
	const signal = "coretest.close"
	x.Sink.Subscribe(signal, func(signals.Signal) {
		err := x.Close()
		x.violatedIf(err != nil, "Close from a handler: got error %v, want nil", err)
	})
	return func(context.Context) error { x.Sink.Raise(signal); return nil }
}

// everythingAtOnce makes random calls from many goroutines.
func (x *exam) everythingAtOnce(seed uint64) {
	x.Helper()
	var all sync.WaitGroup
	for g := range uint64(10) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, g))
			for range 50 {
				x.randomCall(random)
				err := CheckBooks(x.stats())
				x.violatedIf(err != nil, "%v", err)
			}
		})
	}
	x.call(fmt.Sprintf("random calls with seed %d", seed), func(context.Context) error { all.Wait(); return nil }).returns(nil)
}

func (x *exam) randomCall(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(100))*time.Millisecond)
	defer cancel()
	what, err, allowed := "", error(nil), []error{nil, context.DeadlineExceeded}
	switch n := random.IntN(100); {
	case n < 50:
		what, allowed = "Submit", append(allowed, core.ErrClosed, core.ErrFull)
		err = x.Submit(ctx, x.randomBody(random.Uint64()))
	case n < 60:
		what, err = "Flush", x.Flush(ctx)
	case n < 70 && hasIdle(x.Subject):
		what, err = "WaitIdle", x.WaitIdle(ctx)
	case n < 80 && canPause(x.Subject):
		if n%2 == 0 {
			x.Pause()
		} else {
			x.Resume()
		}
	case n < 94:
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	case n < 95:
		x.Complete()
	case n < 97:
		what, err = "Drain", x.Drain(ctx)
	case n < 98:
		what, err = "Stop", x.Stop(ctx)
	case n < 99:
		what, err, allowed = "Close", x.Close(), []error{nil}
	}
	x.checkError(what, err, allowed)
}

func (x *exam) randomBody(seed uint64) Body {
	return func(ctx context.Context) error {
		random := rand.New(rand.NewPCG(seed, 0))
		switch random.IntN(13) {
		case 0:
			return errors.New("failed on purpose")
		case 1:
			panic("panicked on purpose")
		case 2:
			<-ctx.Done()
			return ctx.Err()
		case 3, 4, 12:
			w := waits[random.IntN(3)] // WaitIdle may be missing
			x.checkError(w.name+" from a body", w.of(x)(ctx), []error{core.ErrWouldDeadlock})
		case 5:
			if random.IntN(20) == 0 {
				x.violatedIf(x.Close() != nil, "Close from a body returned an error")
			}
		case 6, 7, 8:
			select {
			case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return nil
	}
}
