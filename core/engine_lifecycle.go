package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// Lifecycle has the methods that shut down something that accepts work, such as a
// coordinator. They mean the same in the whole library. All methods may be called many
// times, from many goroutines, and from inside a body.
type Lifecycle interface {
	// Complete ends the intake: no more items are accepted. Accepted items still run.
	Complete()
	// Flush waits until all that has been accepted so far is finished, while the intake
	// stays open. If ctx ends first, Flush returns the cause of ctx. Inside a body it
	// returns ErrWouldDeadlock.
	Flush(ctx context.Context) error
	// Drain calls Complete, and then waits until all that was accepted is finished. If
	// ctx ends first, Drain returns the cause of ctx, and the intake stays closed. Inside
	// a body it returns ErrWouldDeadlock and changes nothing.
	Drain(ctx context.Context) error
	// Stop ends the intake, cancels what has not started, and waits until what runs is
	// finished. If ctx ends first, Stop returns the cause of ctx. Inside a body it
	// returns ErrWouldDeadlock and changes nothing.
	Stop(ctx context.Context) error
	// Close ends the intake, cancels what runs and what has not started, and waits for
	// the bodies to return. Inside a body or a handler it does not wait. It returns nil.
	Close() error
}

// Complete ends the intake: later items get [ErrClosed]. What was accepted still runs.
// A coordinator with CancelOn, DeferOn, ResumeOn or DrainOn on a shared sink stays in
// memory until it is drained or closed.
func (c Control) Complete() {
	e := c.made()
	e.mu.Lock()
	if e.closeIntake() {
		e.startFlush() // so that the last operation detaches the engine
	}
	e.unlock()
	e.detachIfDone()
}

// startFlush begins to wait for what has been accepted so far; nil if that is
// finished. mu is held.
func (e *engine) startFlush() *flush {
	left := e.unfinished() // collects
	newest := e.index.newest
	return e.expect(left, func(o *Operation) bool { return o.id <= newest })
}

// expect begins to wait for so many operations; nil if there are none. mu is held.
func (e *engine) expect(left int, includes func(*Operation) bool) *flush {
	if left == 0 {
		return nil
	}
	f := &flush{includes, left, make(chan struct{})}
	e.flushes = append(e.flushes, f)
	return f
}

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

// waitForAll waits until what start has begun with mu held is done.
func (e *engine) waitForAll(ctx context.Context, start func() *flush) error {
	if e.isOwn(ctx) {
		return ErrWouldDeadlock
	}
	e.mu.Lock()
	f := start()
	e.mu.Unlock()
	if f == nil {
		return nil
	}
	err := (awaited{engine: e, flush: f}).wait(ctx, f.done)
	if err == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.left == 0 {
		return nil
	}
	e.flushes = without(e.flushes, f)
	return err
}

// Drain ends the intake, as Complete does, and waits as Flush does.
func (c Control) Drain(ctx context.Context) error { return c.drain(ctx, false) }

// Stop ends the intake and cancels the pending operations with the cause [ErrStopped].
// Then it waits, as Flush does, until the operations that have started are finished.
func (c Control) Stop(ctx context.Context) error { return c.drain(ctx, true) }

// drain is Stop, or Drain, which does not cancel.
func (c Control) drain(ctx context.Context, cancels bool) error {
	if c.Inside(ctx) {
		return ErrWouldDeadlock
	}
	c.Complete()
	if cancels {
		c.cancelAll(StatusPending, nil, ErrStopped)
	}
	return c.Flush(ctx)
}

// Abort cancels all pending, running and suspended operations, each as by Cancel. The
// intake stays open.
func (c Control) Abort(cause error) {
	c.made().cancelAll(StatusAlive, nil, cmp.Or(cause, ErrCancelled))
}

// cancelAll cancels the operations of a status that belong to g, if that is not nil.
func (e *engine) cancelAll(status Status, g *group, cause error) {
	e.mu.Lock()
	e.cancelLocked(status, g, cause)
	e.unlock()
}

// cancelLocked is cancelAll with mu held.
func (e *engine) cancelLocked(status Status, g *group, cause error) {
	e.collect()
	alive := append(e.scheduler.all(), e.started()...)
	slices.SortFunc(alive, byID)
	for _, o := range alive {
		if o.status&status != 0 && (g == nil || groupOf(o) == g) {
			e.cancel(o, cause)
		}
	}
}

// cancel cancels an operation that has not ended: one that has started returns then,
// others do not start. mu is held.
func (e *engine) cancel(o *Operation, cause error) {
	if o.status == StatusPending {
		e.withdraw(o, StatusCancelled, cause, e.clock.now())
		return
	}
	if d := o.details(); d.cause == nil { // the first one counts
		d.cause = cause
	}
	e.out.cancels = append(e.out.cancels, cancelled{o, cause})
}

// Close ends the intake, cancels pending and running operations with the cause
// [ErrClosed], waits for the bodies to return and empties the window. It has no deadline:
// it waits as long as a body ignores the end of its context. It returns nil.
//
// Close does not wait where its wait could never end:
//   - inside an operation of the coordinator, and inside handlers;
//   - if the caller is a body of another coordinator, and a body of this coordinator
//     waits in Close of the other one;
//   - if the caller is a body of a ForEach or Map, and a body of this coordinator waits
//     for that ForEach or Map.
func (c Control) Close() error {
	e := c.made()
	if e.shut(e.errClosed) {
		e.sink.RaiseKey(SignalClosed, e.name)
	}
	by := runningOn()
	if deliveries(1) == 0 && ends.await(by, e.number) {
		<-e.closed
		ends.reached(by, e.number)
	}
	return nil
}

// ends are the engines whose end is waited for in bodies, even if the contexts of the
// bodies end: by Close, or by the ForEach or Map that it is the engine of.
var ends awaitedEnds

type awaitedEnds struct {
	mu    sync.Mutex
	waits map[endWait]int // how often; there is no circle of these
}

// endWait is a wait of a body of engine by for the end of engine of.
type endWait struct{ by, of uint64 }

// await notes that a body of engine by is about to wait for the end of engine of. It
// reports false, and notes nothing, if that would be waiting for itself.
func (a *awaitedEnds) await(by, of uint64) bool {
	if by == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waitsFor(of, by) {
		return false
	}
	put(&a.waits, endWait{by, of}, a.waits[endWait{by, of}]+1)
	return true
}

// waitsFor reports whether an engine is another one, or waits for its end, directly or not.
// mu is held.
func (a *awaitedEnds) waitsFor(by, of uint64) bool {
	found := by == of
	for w := range a.waits {
		found = found || w.by == by && a.waitsFor(w.of, of)
	}
	return found
}

// reached undoes an await.
func (a *awaitedEnds) reached(by, of uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := (endWait{by, of}); a.waits[w] > 1 {
		a.waits[w]--
	} else {
		delete(a.waits, w)
	}
}

// shut is Close without the waiting. It reports whether it was the first.
func (e *engine) shut(cause error) bool {
	e.made().mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return false
	}
	e.closing = true
	e.closeIntake()
	e.cancelLocked(StatusAlive, nil, cause)
	if e.alive() == 0 {
		e.finalize(e.clock.now())
	}
	e.unlock()
	e.detachIfDone()
	return true
}

// withdraw ends a pending operation that will not run. mu is held.
func (e *engine) withdraw(o *Operation, status Status, err error, now int64) {
	e.scheduler.remove(o)
	e.leaveQueue(o)
	e.retire(o, status, err, now)
	if o.class > 0 { // the next of its key may not have to wait for that
		e.wakeLocked()
	}
}

// finalize empties the window of a closed engine. mu is held.
func (e *engine) finalize(now int64) {
	e.alarm.stop()
	e.sweeper.stop()
	e.finalized = true
	for o := e.window.any(); o != nil; o = e.window.any() {
		e.window.remove(o)
		e.forget(o, now)
	}
	e.endClose()
}

// detachIfDone removes the gates when nothing will start any more, after which the sink
// does not refer to the engine.
func (e *engine) detachIfDone() {
	e.mu.Lock()
	detach := !e.detached && (e.closing || e.intake.closed && e.unfinished() == 0) // closed with mu held
	e.detached = e.detached || detach
	hooks := e.onClosed
	e.mu.Unlock()
	if !detach {
		return
	}
	e.rules.detach()
	for i := range e.lanes {
		e.lanes[i].detach()
	}
	e.resumeOn.detach()
	if e.undrain != nil {
		e.undrain()
	}
	e.tellClosed(hooks)
}

// Pause stops further operations from starting. Running operations go on, and Enqueue
// still accepts items. It raises [SignalPaused] if the coordinator was not paused.
func (c Control) Pause() { c.made().setPaused(true, SignalPaused) }

// Resume ends a Pause. It raises [SignalResumed] if the coordinator was paused.
func (c Control) Resume() { c.made().setPaused(false, SignalResumed) }

func (e *engine) setPaused(paused bool, signal string) {
	e.made().mu.Lock()
	changed := e.paused != paused
	e.paused = paused
	e.wakeLocked()
	e.mu.Unlock()
	if changed {
		e.sink.RaiseKey(signal, e.name)
	}
}

// SetMaxConcurrency changes how many operations may run at once. After an increase, more
// may start at once. After a decrease, running operations go on, and none starts until
// fewer than n run. It returns an error, and changes nothing, if n is less than 1.
func (c Control) SetMaxConcurrency(n int) error {
	e := c.made()
	if n < 1 {
		return fmt.Errorf("core: SetMaxConcurrency(%d): at least one operation must be able to run", n)
	}
	e.mu.Lock()
	e.limit = n
	e.grant()
	e.wakeLocked()
	e.unlock()
	return nil
}

// Cancel cancels an operation with that cause; nil means [ErrCancelled]. A pending
// operation does not run. The context of a running or suspended operation is cancelled;
// if its body then returns an error, the operation counts as cancelled. Cancel does not
// wait for the body. It returns false if the id is unknown or the operation has ended.
func (c Control) Cancel(id OperationID, cause error) bool {
	e := c.made()
	e.mu.Lock()
	defer e.unlock()
	e.collect()
	o := e.index.get(id)
	if o == nil || o.status&StatusAlive == 0 {
		return false
	}
	e.cancel(o, cmp.Or(cause, ErrCancelled))
	return true
}

// find returns an operation that is pending, running or in the window.
func (e *engine) find(id OperationID) *Operation {
	e.lockFresh()
	defer e.mu.Unlock()
	return e.index.get(id)
}

// lockFresh locks the engine with everything accepted at hand and nothing in the
// window whose time is over.
func (e *engine) lockFresh() {
	e.made().mu.Lock()
	e.collect()
	oldest, ok := e.window.oldest()
	if !ok || e.window.maxAge == 0 {
		return
	}
	now := e.clock.now()
	if oldest > now-e.window.maxAge {
		return
	}
	e.sweep(now)
	e.unlock()
	e.mu.Lock()
}
