// This file decides when a coordinator takes items, starts them and ends.

package core

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// Complete ends the intake: later items get [ErrClosed]. What was accepted still runs.
// A coordinator with CancelOn, DeferOn, ResumeOn or DrainOn on a shared sink stays in
// memory until it is drained or closed.
func (c Control) Complete() { c.made().complete() }

// Flush waits until all operations accepted so far are finished, while the intake stays
// open. If ctx ends first, Flush returns the cause of ctx. While the coordinator is
// paused, Flush waits for Resume. An operation of the coordinator gets [ErrWouldDeadlock]
// if it calls Flush on its goroutine or with its context. A goroutine that a body has
// started gets ErrWouldDeadlock only if it passes the operation's context.
func (c Control) Flush(ctx context.Context) error {
	e := c.made()
	return e.waitForAll(ctx, e.startFlush)
}

// WaitIdle waits until nothing is pending, running or suspended. It also waits for
// operations that are enqueued meanwhile. The intake stays open. If ctx ends first,
// WaitIdle returns the cause of ctx. Inside an operation of the coordinator it returns
// [ErrWouldDeadlock], as Flush does.
func (c Control) WaitIdle(ctx context.Context) error {
	e := c.made()
	return e.waitForAll(ctx, func() *flush { return e.expect(e.unfinished(), nil) })
}

// Drain ends the intake, as Complete does, and waits as Flush does.
func (c Control) Drain(ctx context.Context) error { return c.drain(ctx, false) }

// Stop ends the intake and cancels the pending operations with the cause [ErrStopped].
// Then it waits, as Flush does, until the operations that have started are finished.
func (c Control) Stop(ctx context.Context) error { return c.drain(ctx, true) }

// drain does the work of Stop and of Drain; Drain does not cancel.
func (c Control) drain(ctx context.Context, cancels bool) error {
	if c.Inside(ctx) {
		return ErrWouldDeadlock
	}
	c.Complete()
	if cancels {
		c.engine.cancelAll(StatusPending, nil, ErrStopped)
	}
	return c.Flush(ctx)
}

// Abort cancels all pending, running and suspended operations, as Cancel does. The intake stays
// open.
func (c Control) Abort(cause error) {
	c.made().cancelAll(StatusAlive, nil, cmp.Or(cause, ErrCancelled))
}

// Close ends the intake, cancels pending and running operations with the cause [ErrClosed],
// waits for the bodies to return and empties the window. So call [Control.Operations]
// before Close if you need the failed operations. It has no deadline: it waits as long as a
// body ignores the end of its context. It returns nil.
//
// Close does not wait inside an operation of the coordinator, and inside handlers. It does not find
// circles: if bodies of two coordinators close each other's coordinator, both wait for ever. So does a body
// of a ForEach or Map that closes the coordinator whose body waits for that ForEach or Map. There, call
// Complete and Abort, which do not wait.
func (c Control) Close() error {
	e := c.made()
	if e.shut(e.errClosed) {
		e.sink.RaiseKey(SignalClosed, e.name)
	}
	if hook.Deliveries(1) == 0 && !runsOn(e.number) {
		<-e.closed
	}
	return nil
}

// Pause stops further operations from starting. Running operations go on, and Enqueue
// still accepts items. It raises [SignalPaused] if the coordinator was not paused.
func (c Control) Pause() { c.made().setPaused(true, SignalPaused) }

// Resume ends a Pause. It raises [SignalResumed] if the coordinator was paused.
func (c Control) Resume() { c.made().setPaused(false, SignalResumed) }

// SetMaxConcurrency changes how many operations may run at once. After an increase, more
// may start at once. After a decrease, running operations go on, and none starts until
// fewer than n run. It returns an error, and changes nothing, if n is less than 1.
func (c Control) SetMaxConcurrency(n int) error {
	e := c.made()
	if n < 1 {
		return fmt.Errorf("core: SetMaxConcurrency(%d): at least one operation must be able to run", n)
	}
	e.mu.Lock()
	e.slots.Limit = n
	e.grant()
	e.wakeLocked()
	e.unlock()
	return nil
}

// SetClass changes Limit, Rate, CostRate and Shadow of the class with that name, to the values in class; 0
// and nil mean none, as in [Options.Classes]. The other fields of class must be zero or unchanged. After a
// change, a bucket has as many tokens as before, but not more than the new burst. A new rate starts
// with a full bucket. A shadow with the same limits goes on; another one begins to count from zero. Running operations go on. If SetClass returns an error, it has changed
// nothing. If there is no such class, the error matches [ErrUnknownClass].
func (c Control) SetClass(class Class) error {
	e := c.made()
	i, err := find(e.opts.Classes, class.Name, ErrUnknownClass, e.name)
	if err != nil {
		return err
	}
	i++
	e.mu.Lock()
	defer e.unlock()
	changed, err := e.classes[i].Class.changed(class)
	if err != nil {
		return err
	}
	b, now := &e.scheduler, e.clock.Now()
	if !changed.Shadow.same(e.classes[i].Shadow) {
		e.setShadow(uint8(i), changed.Shadow)
	}
	e.classes[i].Class = changed
	if b.SetClass(uint8(i), changed.limits(), now) {
		e.tellClass(uint8(i))
	}
	e.limitTrials(now)
	e.grant()
	e.wakeLocked()
	return nil
}

// Cancel cancels an operation with that cause; nil means [ErrCancelled]. A pending
// operation does not run. The context of a running or suspended operation is cancelled;
// if its body then returns an error, the operation counts as cancelled. Cancel does not
// wait for the body. It returns false if the id is unknown or the operation has ended.
func (c Control) Cancel(id OperationID, cause error) bool { return c.made().cancelByID(id, cause) }
