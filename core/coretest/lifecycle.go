package coretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Body is a piece of work. It is the item type to instantiate a generic subject
// with.
type Body func(ctx context.Context) error

// Run runs a body: the work function of a subject whose items are bodies.
func Run(ctx context.Context, body Body) error { return body(ctx) }

// A Subject is what [RunLifecycle] needs to know of a thing to put it through its
// paces. The first two fields are required; what is nil is not tested.
type Subject struct {
	core.Lifecycle

	// Submit accepts a body to be run with a context that Close cancels, or
	// says why not. It may wait for room.
	Submit func(ctx context.Context, body Body) error

	// Pause and Resume keep accepted bodies from starting, and let them.
	Pause, Resume func()

	// Sink is one whose handlers may close the subject.
	Sink *core.Sink

	// Stats are the counters, for the accounting law.
	Stats func() core.Stats
}

// A Factory makes a subject that is open and idle. It is called inside the bubble
// of each case, at least once.
type Factory func(t testing.TB) Subject

// RunLifecycle runs the lifecycle suite, each case as a subtest in a bubble of its
// own. A bubble ends only when all its goroutines have, so a goroutine that the
// subject leaves behind fails the case in which it was started.
func RunLifecycle(t *testing.T, factory Factory) {
	t.Helper()
	for _, c := range lifecycleCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, factory) })
		})
	}
}

// lifecycleCase is one promise and the scene that puts it to the test.
type lifecycleCase struct {
	name  string
	rule  string // printed when it is violated
	needs func(Subject) bool
	scene func(x *exam)
}

func canPause(s Subject) bool { return s.Pause != nil && s.Resume != nil }
func hasSink(s Subject) bool  { return s.Sink != nil }

func (c lifecycleCase) run(t testing.TB, factory Factory) {
	x := newExam(t, c.rule, factory)
	if c.needs != nil && !c.needs(x.Subject) {
		x.finish()
		t.Skip("the subject does not offer what this case needs")
	}
	defer x.finish()
	c.scene(x)
}

var lifecycleCases = []lifecycleCase{{
	name: "close twice",
	rule: "Close may be called many times and returns nil",
	scene: func(x *exam) {
		x.submit(quick)
		for range 3 {
			x.call("Close", x.Close).returns(nil)
		}
	},
}, {
	name: "close unused",
	rule: "Close of something that was never used returns nil at once",
	scene: func(x *exam) {
		begun := time.Now()
		x.call("Close", x.Close).returns(nil)
		if took := time.Since(begun); took != 0 {
			x.violated("Close took %v of the bubble's time, want none", took)
		}
	},
}, {
	name: "drain twice",
	rule: "Drain may be called many times and returns nil when all is finished",
	scene: func(x *exam) {
		x.submit(quick)
		for range 3 {
			x.call("Drain", x.drain).returns(nil)
		}
	},
}, {
	name: "complete twice",
	rule: "Complete may be called many times; what was accepted still runs",
	scene: func(x *exam) {
		b := x.block()
		for range 3 {
			x.call("Complete", x.complete).returns(nil)
		}
		b.release()
		x.call("Drain", x.drain).returns(nil)
		b.mustHaveEnded("Drain")
	},
}, {
	name: "any call after close",
	rule: "after Close the other calls return at once, without error, and a late item gets core.ErrClosed",
	scene: func(x *exam) {
		x.submit(quick)
		x.call("Close", x.Close).returns(nil)
		x.call("Complete", x.complete).returns(nil)
		x.call("Flush", x.flush).returns(nil)
		x.call("Drain", x.drain).returns(nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name: "late item after complete",
	rule: "after Complete a late item gets core.ErrClosed, also while accepted ones still run",
	scene: func(x *exam) {
		b := x.block()
		x.Complete()
		x.call("Submit", x.late).returns(core.ErrClosed)
		b.release()
	},
}, {
	name: "late item after drain",
	rule: "after Drain a late item gets core.ErrClosed",
	scene: func(x *exam) {
		x.call("Drain", x.drain).returns(nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name: "drain waits",
	rule: "Drain returns when all that was accepted is finished, and not before",
	scene: func(x *exam) {
		b := x.block()
		var after atomic.Bool
		x.submitAside("an item behind it", func(context.Context) error { after.Store(true); return nil })
		drain := x.call("Drain", x.drain)
		drain.stillWaits()
		b.release()
		drain.returns(nil)
		b.mustHaveEnded("Drain")
		if !after.Load() {
			x.violated("Drain returned before the last accepted body had run")
		}
	},
}, {
	name: "drain from many goroutines",
	rule: "Drain may be called from many goroutines; each returns when all is finished",
	scene: func(x *exam) {
		b := x.block()
		var drains []*call
		for range 10 {
			drains = append(drains, x.call("Drain", x.drain))
		}
		for _, d := range drains {
			d.stillWaits()
		}
		b.release()
		for _, d := range drains {
			d.returns(nil)
		}
	},
}, {
	name: "deadline passes during drain",
	rule: "when its context ends Drain stops waiting and returns the cause; the intake stays closed, what runs goes on",
	scene: func(x *exam) {
		b := x.block()
		patience := errors.New("out of patience")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, patience)
		defer cancel()
		begun := time.Now()
		x.call("Drain", func() error { return x.Drain(ctx) }).returns(patience)
		if took := time.Since(begun); took != time.Second {
			x.violated("Drain returned after %v, want the second its context gave it", took)
		}
		b.mustStillRun("a Drain that gave up")
		x.call("Submit", x.late).returns(core.ErrClosed)
		b.release()
		x.call("second Drain", x.drain).returns(nil)
		b.mustHaveEnded("second Drain")
	},
}, {
	name: "deadline passes during flush",
	rule: "when its context ends Flush stops waiting and returns the cause; intake and what runs go on",
	scene: func(x *exam) {
		b := x.block()
		patience := errors.New("out of patience")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, patience)
		defer cancel()
		x.call("Flush", func() error { return x.Flush(ctx) }).returns(patience)
		b.mustStillRun("a Flush that gave up")
		x.submitAside("an item after the Flush", quick)
		b.release()
		x.call("second Flush", x.flush).returns(nil)
		b.mustHaveEnded("second Flush")
	},
}, {
	name: "flush leaves the intake open",
	rule: "Flush waits for what was accepted before it; the intake stays open, and later items do not prolong it",
	scene: func(x *exam) {
		x.call("Flush of nothing", x.flush).returns(nil)
		first := x.block()
		flush := x.call("Flush", x.flush)
		flush.stillWaits()
		second := x.blockLater()
		first.release()
		flush.returns(nil)
		first.mustHaveEnded("Flush")
		second.mustStillRun("a Flush that does not wait for it")
		second.release()
		x.call("second Flush", x.flush).returns(nil)
		second.mustHaveEnded("second Flush")
		x.submit(quick)
	},
}, {
	name: "flushes overlap",
	rule: "many Flushes may wait at once, each for what was accepted before it",
	scene: func(x *exam) {
		first := x.block()
		early := x.call("early Flush", x.flush)
		early.stillWaits()
		second := x.blockLater()
		late := x.call("late Flush", x.flush)
		late.stillWaits()
		first.release()
		early.returns(nil)
		late.stillWaits()
		second.release()
		late.returns(nil)
	},
}, {
	name: "close cancels what runs",
	rule: "Close cancels the contexts of running bodies, with core.ErrClosed as the cause, and waits for the bodies",
	scene: func(x *exam) {
		var cause atomic.Value
		var ended atomic.Bool
		started := make(chan struct{})
		x.submit(func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			time.Sleep(time.Minute) // tidying up takes time
			ended.Store(true)
			return ctx.Err()
		})
		x.await("the body to start", started)
		x.call("Close", x.Close).returns(nil)
		if !ended.Load() {
			x.violated("Close returned while a body was still running")
		}
		if got, _ := cause.Load().(error); !errors.Is(got, core.ErrClosed) {
			x.violated("the body's context ended with the cause %v, want %v", got, core.ErrClosed)
		}
	},
}, {
	name: "close from many goroutines",
	rule: "every Close returns only when no body runs any more",
	scene: func(x *exam) {
		b := x.stubborn()
		var closes []*call
		for range 10 {
			closes = append(closes, x.call("Close", x.Close))
		}
		for _, c := range closes {
			c.stillWaits()
		}
		b.release()
		for _, c := range closes {
			c.returns(nil)
		}
		b.mustHaveEnded("Close")
	},
}, {
	name: "close while draining",
	rule: "Close during a Drain cancels what the Drain waits for; both return nil",
	scene: func(x *exam) {
		b := x.block()
		drain := x.call("Drain", x.drain)
		drain.stillWaits()
		x.call("Close", x.Close).returns(nil)
		drain.returns(nil)
		b.mustHaveEnded("Close")
	},
}, {
	name: "close while flushing",
	rule: "Close during a Flush cancels what the Flush waits for; both return nil",
	scene: func(x *exam) {
		b := x.block()
		flush := x.call("Flush", x.flush)
		flush.stillWaits()
		x.call("Close", x.Close).returns(nil)
		flush.returns(nil)
		b.mustHaveEnded("Close")
	},
}, {
	name: "item while closing",
	rule: "an item that comes while Close waits for a body gets core.ErrClosed at once",
	scene: func(x *exam) {
		b := x.stubborn()
		closing := x.call("Close", x.Close)
		closing.stillWaits()
		x.call("Submit", x.late).returns(core.ErrClosed)
		b.release()
		closing.returns(nil)
	},
}, {
	name: "items wait for room while closing",
	rule: "items that wait for room when Close comes get core.ErrClosed; nothing runs after Close",
	scene: func(x *exam) {
		var accepted, running, ran atomic.Int64
		var submits []*call
		for range 100 {
			submits = append(submits, x.call("Submit", func() error {
				err := x.Submit(context.Background(), func(ctx context.Context) error {
					ran.Add(1)
					running.Add(1)
					defer running.Add(-1)
					<-ctx.Done()
					return ctx.Err()
				})
				if err == nil {
					accepted.Add(1)
				}
				return err
			}))
		}
		synctest.Wait()
		x.call("Close", x.Close).returns(nil)
		if n := running.Load(); n != 0 {
			x.violated("%d bodies were running when Close returned, want none", n)
		}
		before := ran.Load()
		for _, s := range submits {
			s.returnsOneOf(nil, core.ErrClosed)
		}
		time.Sleep(time.Hour)
		if after := ran.Load(); after != before {
			x.violated("%d bodies were started after Close had returned, want none", after-before)
		}
		if r, a := ran.Load(), accepted.Load(); r > a {
			x.violated("%d bodies were run, but only %d accepted", r, a)
		}
	},
}, {
	name: "close from a body",
	rule: "Close called by a body does not wait for that body; it ends the intake",
	scene: func(x *exam) {
		x.fromBody("Close", func(ctx context.Context) error { return x.Close() }, nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
		x.call("Close", x.Close).returns(nil)
	},
}, {
	name: "complete from a body",
	rule: "Complete may be called by a body",
	scene: func(x *exam) {
		x.fromBody("Complete", func(context.Context) error { x.Complete(); return nil }, nil)
		x.call("Drain", x.drain).returns(nil)
	},
}, {
	name: "drain from a body",
	rule: "Drain called by a body, with its context or another, returns core.ErrWouldDeadlock and changes nothing",
	scene: func(x *exam) {
		x.fromBody("Drain(its context)", func(ctx context.Context) error { return x.Drain(ctx) }, core.ErrWouldDeadlock)
		x.fromBody("Drain(another context)", func(context.Context) error { return x.drain() }, core.ErrWouldDeadlock)
		x.submit(quick)
	},
}, {
	name: "flush from a body",
	rule: "Flush called by a body, with its context or another, returns core.ErrWouldDeadlock",
	scene: func(x *exam) {
		x.fromBody("Flush(its context)", func(ctx context.Context) error { return x.Flush(ctx) }, core.ErrWouldDeadlock)
		x.fromBody("Flush(another context)", func(context.Context) error { return x.flush() }, core.ErrWouldDeadlock)
		x.call("Flush", x.flush).returns(nil)
	},
}, {
	name:  "close from a handler",
	rule:  "a signal handler may call Close, whoever raised the signal; it does not wait for bodies",
	needs: hasSink,
	scene: func(x *exam) {
		const signal = "coretest.close"
		x.closeOn(signal)
		x.fromBody("Raise", func(context.Context) error { x.Sink.Raise(signal); return nil }, nil)
		x.call("Submit", x.late).returns(core.ErrClosed)
	},
}, {
	name:  "close from a handler, beside a body",
	rule:  "a handler that calls Close while a body runs does not hold up whoever raised the signal",
	needs: hasSink,
	scene: func(x *exam) {
		const signal = "coretest.close"
		x.closeOn(signal)
		b := x.stubborn()
		x.call("Raise", func() error { x.Sink.Raise(signal); return nil }).returns(nil)
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
		var ran atomic.Bool
		x.submit(func(context.Context) error { ran.Store(true); return nil })
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		x.call("Drain with a deadline", func() error { return x.Drain(ctx) }).returns(context.DeadlineExceeded)
		drain := x.call("Drain", x.drain)
		drain.stillWaits()
		if ran.Load() {
			x.violated("a body was started while paused")
		}
		x.Resume()
		drain.returns(nil)
		if !ran.Load() {
			x.violated("Drain returned before the body had run")
		}
	},
}, {
	name:  "close while paused",
	rule:  "Close while paused returns; what was accepted is not run",
	needs: canPause,
	scene: func(x *exam) {
		x.Pause()
		var ran atomic.Bool
		x.submit(func(context.Context) error { ran.Store(true); return nil })
		x.call("Close", x.Close).returns(nil)
		x.Resume()
		synctest.Wait()
		if ran.Load() {
			x.violated("a body was run after Close")
		}
	},
}, {
	name: "bodies fail and panic",
	rule: "a body that fails or panics hinders neither others nor Flush, Drain and Close",
	scene: func(x *exam) {
		x.submit(func(context.Context) error { return errors.New("failed on purpose") })
		x.submit(func(context.Context) error { panic("panicked on purpose") })
		x.call("Flush", x.flush).returns(nil)
		var ran atomic.Bool
		x.submit(func(context.Context) error { ran.Store(true); return nil })
		x.call("Drain", x.drain).returns(nil)
		if !ran.Load() {
			x.violated("a body that was accepted after one that panicked did not run")
		}
	},
}, {
	name: "everything at once",
	rule: "10 goroutines x 50 random calls: each returns, with an answer from the common vocabulary, and nothing is left",
	scene: func(x *exam) {
		x.everythingAtOnce(0)
		for seed := uint64(1); seed < 5; seed++ {
			other := newExam(x.TB, x.rule, x.factory)
			other.everythingAtOnce(seed)
			other.finish()
		}
	},
}}

func quick(context.Context) error { return nil }

// patience is how long, in the bubble's time, a call that must return may take: a
// subject may wait for an interval or back off before it finishes.
const patience = 24 * time.Hour

// exam is one case being run.
type exam struct {
	testing.TB
	Subject
	rule    string
	factory Factory
	over    chan struct{} // closed at the end: everything that blocks, stops
}

func newExam(t testing.TB, rule string, factory Factory) *exam {
	x := &exam{TB: t, rule: rule, factory: factory, over: make(chan struct{})}
	x.Subject = factory(t)
	if x.Lifecycle == nil || x.Subject.Submit == nil {
		t.Fatal("coretest: a Subject needs a Lifecycle and Submit")
	}
	return x
}

// finish closes the subject, also when the case has failed, and checks its books.
func (x *exam) finish() {
	x.Helper()
	close(x.over)
	closing := x.call("the last Close", x.Close)
	if err := closing.wait(); err != nil {
		x.violated("the last Close: got %v, want nil", err)
	}
	synctest.Wait()
	if x.Stats == nil {
		return
	}
	s := x.Stats()
	x.checkBooks(s)
	if s.Pending != 0 || s.Running != 0 || !s.Closed {
		x.violated("after Close: got pending %d, running %d, closed %t, want 0, 0, true", s.Pending, s.Running, s.Closed)
	}
}

func (x *exam) checkBooks(s core.Stats) {
	x.Helper()
	if err := CheckBooks(s); err != nil {
		x.violated("%v", err)
	}
}

// CheckBooks returns an error if counters violate the accounting law, that every
// accepted item is in exactly one place:
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled + Refused + Dropped
func CheckBooks(s core.Stats) error {
	sum := uint64(s.Pending) + uint64(s.Running) + s.Succeeded + s.Failed + s.Cancelled + s.Refused + s.Dropped
	if s.Pending < 0 || s.Running < 0 || s.Enqueued != sum {
		return fmt.Errorf("the books do not balance: Enqueued is %d, but Pending + Running + Succeeded + Failed + Cancelled + Refused + Dropped is %d, in %v", s.Enqueued, sum, s)
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

func (x *exam) drain() error    { return x.Drain(context.Background()) }
func (x *exam) flush() error    { return x.Flush(context.Background()) }
func (x *exam) complete() error { x.Complete(); return nil }

// late submits a body that should not be accepted.
func (x *exam) late() error {
	return x.Submit(context.Background(), func(context.Context) error {
		x.violated("a body ran that came too late")
		return nil
	})
}

// submit submits a body that must be accepted.
func (x *exam) submit(body Body) {
	x.Helper()
	x.call("Submit", func() error { return x.Submit(context.Background(), body) }).returns(nil)
}

// submitAside submits a body while others run, and thus may have to wait for room.
func (x *exam) submitAside(what string, body Body) {
	x.Helper()
	c := x.call("Submit of "+what, func() error { return x.Submit(context.Background(), body) })
	synctest.Wait()
	select {
	case <-c.done:
		c.returns(nil)
	default:
		x.Fatalf("coretest: Submit of %s waits for room; the Subject must have room for two items", what)
	}
}

// call is a call on a goroutine of its own, so that one that hangs is seen.
type call struct {
	x    *exam
	what string
	err  error
	done chan struct{}
}

func (x *exam) call(what string, fn func() error) *call {
	c := &call{x: x, what: what, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() {
			if r := recover(); r != nil {
				c.err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		c.err = fn()
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

// returns checks that the call returns, and what.
func (c *call) returns(want error) {
	c.x.Helper()
	if got := c.wait(); got == errHangs {
		c.x.violated("%s: %v", c.what, got)
		c.x.FailNow()
	} else if !errors.Is(got, want) {
		c.x.violated("%s: got error %v, want %v", c.what, got, want)
	}
}

func (c *call) returnsOneOf(want ...error) {
	c.x.Helper()
	got := c.wait()
	for _, w := range want {
		if errors.Is(got, w) {
			return
		}
	}
	c.x.violated("%s: got error %v, want one of %v", c.what, got, want)
}

// stillWaits checks that the call has not returned although everything has come
// to rest.
func (c *call) stillWaits() {
	c.x.Helper()
	synctest.Wait()
	select {
	case <-c.done:
		c.x.violated("%s returned %v, want it to wait", c.what, c.err)
	default:
	}
}

// blocked is a body that runs until it is released or, unless it is stubborn,
// cancelled.
type blocked struct {
	x        *exam
	started  chan struct{}
	let      chan struct{}
	ended    atomic.Bool
	released bool
}

func (x *exam) newBlocked(stubborn bool) (*blocked, Body) {
	b := &blocked{x: x, started: make(chan struct{}), let: make(chan struct{})}
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

// block submits a body that runs until it is released or cancelled, and waits for
// it to start.
func (x *exam) block() *blocked {
	x.Helper()
	b, body := x.newBlocked(false)
	x.submit(body)
	x.await("the body to start", b.started)
	return b
}

// blockLater is block without waiting for the start, for when others run.
func (x *exam) blockLater() *blocked {
	x.Helper()
	b, body := x.newBlocked(false)
	x.submitAside("a second item", body)
	return b
}

// stubborn submits a body that runs until it is released, cancelled or not.
func (x *exam) stubborn() *blocked {
	x.Helper()
	b, body := x.newBlocked(true)
	x.submit(body)
	x.await("the body to start", b.started)
	return b
}

func (b *blocked) release() {
	if !b.released {
		b.released = true
		close(b.let)
	}
}

func (b *blocked) mustHaveEnded(before string) {
	b.x.Helper()
	b.x.violatedIf(!b.ended.Load(), "%s returned before the body had ended", before)
}

func (b *blocked) mustStillRun(despite string) {
	b.x.Helper()
	synctest.Wait()
	b.x.violatedIf(b.ended.Load(), "the body was ended by %s", despite)
}

func (x *exam) await(what string, c <-chan struct{}) {
	x.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		x.violated("waited in vain for %s", what)
		x.FailNow()
	}
}

// fromBody makes a call from inside a body and checks what it returns.
func (x *exam) fromBody(what string, fn func(ctx context.Context) error, want error) {
	x.Helper()
	done := make(chan error, 1)
	x.submit(func(ctx context.Context) error {
		done <- fn(ctx)
		return nil
	})
	select {
	case got := <-done:
		x.violatedIf(!errors.Is(got, want), "%s from a body: got error %v, want %v", what, got, want)
	case <-time.After(patience):
		x.violated("%s from a body: %v", what, errHangs)
		x.FailNow()
	}
}

// closeOn lets a handler close the subject. It stays subscribed: to unsubscribe
// would wait for a handler that hangs.
func (x *exam) closeOn(signal string) {
	x.Sink.Subscribe(signal, func(core.Signal) {
		if err := x.Close(); err != nil {
			x.violated("Close from a handler: got error %v, want nil", err)
		}
	})
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
				if x.Stats != nil {
					x.checkBooks(x.Stats())
				}
			}
		})
	}
	x.call(fmt.Sprintf("random calls with seed %d", seed), func() error { all.Wait(); return nil }).returns(nil)
}

func (x *exam) randomCall(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random.IntN(100))*time.Millisecond)
	defer cancel()
	what, err, allowed := "", error(nil), []error{nil, context.DeadlineExceeded}
	switch n := random.IntN(100); {
	case n < 50:
		what, allowed = "Submit", append(allowed, core.ErrClosed, core.ErrFull)
		err = x.Submit(ctx, x.randomBody(random.Uint64()))
	case n < 70:
		what, err = "Flush", x.Flush(ctx)
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
		what, err, allowed = "Close", x.Close(), []error{nil}
	}
	for _, a := range allowed {
		if errors.Is(err, a) {
			return
		}
	}
	x.violated("%s: got error %v, want one of %v", what, err, allowed)
}

func (x *exam) randomBody(seed uint64) Body {
	return func(ctx context.Context) error {
		random := rand.New(rand.NewPCG(seed, 0))
		switch random.IntN(12) {
		case 0:
			return errors.New("failed on purpose")
		case 1:
			panic("panicked on purpose")
		case 2:
			<-ctx.Done()
			return ctx.Err()
		case 3:
			x.violatedIf(!errors.Is(x.Drain(ctx), core.ErrWouldDeadlock), "Drain from a body did not return core.ErrWouldDeadlock")
		case 4:
			x.violatedIf(!errors.Is(x.flush(), core.ErrWouldDeadlock), "Flush from a body did not return core.ErrWouldDeadlock")
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
