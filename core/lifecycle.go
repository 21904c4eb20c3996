package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Lifecycle is how everything that accepts work is brought to an end; one
// vocabulary for the whole library. All methods may be called many times, from
// many goroutines, and from inside a body.
type Lifecycle interface {
	// Complete ends the intake. What was accepted still runs.
	Complete()
	// Flush waits until all that has been accepted so far is finished, while
	// the intake stays open. When ctx ends first it stops waiting and returns
	// its cause. From inside a body it returns ErrWouldDeadlock.
	Flush(ctx context.Context) error
	// Drain is Complete, and then waits until all that was accepted is
	// finished. When ctx ends first it stops waiting and returns its cause;
	// the intake stays closed. From inside a body it returns ErrWouldDeadlock
	// and changes nothing.
	Drain(ctx context.Context) error
	// Close ends the intake, cancels what runs, accounts for what has not
	// started as cancelled, and waits for the bodies to return. Called from
	// inside a body or a handler it does not wait. It returns nil.
	Close() error
}

// Complete ends the intake: late items get [ErrClosed]. What was accepted still
// runs. A coordinator that heeds signals of a shared sink is kept alive by that
// sink until it has been completed and is done, or closed.
func (e *engine) Complete() {
	if !e.intake.close() {
		return
	}
	e.mu.Lock()
	e.startFlush() // so that the last operation detaches the engine
	e.mu.Unlock()
	e.detachIfDone()
}

// startFlush begins to wait for what has been accepted so far; nil if that is
// finished. mu is held.
func (e *engine) startFlush() *flush {
	e.intake.mu.Lock()
	f := &flush{
		epoch: e.intake.epoch,
		left:  e.running.n + e.scheduler.pending() + e.intake.arrived.n,
		done:  make(chan struct{}),
	}
	e.intake.epoch++
	e.intake.mu.Unlock()
	if f.left == 0 {
		return nil
	}
	e.flushes = append(e.flushes, f)
	return f
}

// Flush waits until all operations accepted so far are finished, while the intake
// stays open. When ctx ends first it returns its cause. Called by one of these
// operations, on its goroutine or with its context, it returns
// [ErrWouldDeadlock]; goroutines that a body has started are recognised by the
// context only. The same goes for operations of other coordinators that one of
// these waits for. While the coordinator is paused it waits for Resume.
func (e *engine) Flush(ctx context.Context) error {
	if e.isOwn(ctx) {
		return ErrWouldDeadlock
	}
	e.mu.Lock()
	f := e.startFlush()
	e.mu.Unlock()
	if f == nil {
		return nil
	}
	if err := (awaited{engine: e, flush: f}).wait(ctx, f.done); err != nil {
		return e.unflush(f, err)
	}
	return nil
}

// unflush stops waiting because of err, unless all is finished by now.
func (e *engine) unflush(f *flush, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.left == 0 {
		return nil
	}
	e.flushes = without(e.flushes, f)
	return err
}

// Drain ends the intake, as Complete does, and waits as Flush does.
func (e *engine) Drain(ctx context.Context) error {
	now, cancel := context.WithCancel(ctx)
	cancel()
	if e.Flush(now) == ErrWouldDeadlock { // known before anything changes
		return ErrWouldDeadlock
	}
	e.Complete()
	return e.Flush(ctx)
}

// Close ends the intake, cancels the running operations with the cause
// [ErrClosed], accounts for the pending ones as cancelled, waits for the bodies
// to return and empties the window. Called by an operation of the coordinator, on
// its goroutine, or by a handler, it does not wait; nor when one of the bodies can
// return only after the caller has, because it closes the caller's coordinator, or
// is in the ForEach or Map of which the caller is a part. It returns nil.
func (e *engine) Close() error {
	if e.shut(ErrClosed) {
		e.sink.RaiseKey(SignalClosed, e.name)
	}
	by := runningOn()
	if deliveries(1) == 0 && ends.await(by, e.number) {
		<-e.closed
		ends.reached(by, e.number)
	}
	return nil
}

// ends are the engines whose end is waited for in bodies, whatever becomes of their
// contexts: by Close, or by the ForEach or Map that it is the engine of.
var ends awaitedEnds

type awaitedEnds struct {
	mu sync.Mutex
	by map[uint64][]uint64 // an engine's number -> those of the engines of the bodies
}

// await notes that a body of engine by is about to wait for the end of engine of. It
// reports false, and notes nothing, if that would be waiting for itself.
func (a *awaitedEnds) await(by, of uint64) bool {
	if by == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := []uint64{by} // who waits for by, in the end
	for i := 0; i < len(seen); i++ {
		if seen[i] == of {
			return false
		}
		for _, n := range a.by[seen[i]] {
			if !slices.Contains(seen, n) {
				seen = append(seen, n)
			}
		}
	}
	if a.by == nil {
		a.by = make(map[uint64][]uint64)
	}
	a.by[of] = append(a.by[of], by)
	return true
}

// reached undoes an await.
func (a *awaitedEnds) reached(by, of uint64) {
	if by == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by[of] = without(a.by[of], by); len(a.by[of]) > 0 {
		return
	}
	if delete(a.by, of); len(a.by) == 0 {
		a.by = nil // a Go map never shrinks
	}
}

// shut is Close without the waiting. It reports whether it was the first.
func (e *engine) shut(cause error) bool {
	e.intake.close()
	var out outcome
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return false
	}
	e.closing = true
	e.collect()
	now := e.clock.now()
	pending := e.scheduler.all()
	slices.SortFunc(pending, byID)
	for _, o := range pending {
		e.withdraw(o, StatusCancelled, cause, now, &out)
	}
	var running []*Operation
	for o := e.running.head; o != nil; o = o.next {
		o.cancelling(cause)
		running = append(running, o)
	}
	if len(running) == 0 {
		e.finalize(now, &out)
	}
	e.mu.Unlock()
	for _, o := range running {
		(*operationContext)(o).real().cancel(cause)
	}
	e.settle(&out)
	e.detach()
	return true
}

// withdraw ends a pending operation that will not run. mu is held.
func (e *engine) withdraw(o *Operation, status Status, err error, now int64, out *outcome) {
	e.scheduler.remove(o)
	e.leaveQueue(o, out)
	switch status {
	case StatusCancelled:
		e.counts.cancelled++
	case StatusRefused:
		e.counts.refused++
	case StatusDropped:
		e.counts.dropped++
	}
	if e.onUnrun != nil && status != StatusCancelled {
		out.calls = append(out.calls, e.onUnrun(err))
	}
	e.retire(o, status, err, now, out)
}

// finalize empties the window of a closed engine. mu is held.
func (e *engine) finalize(now int64, out *outcome) {
	e.alarm.stop()
	e.sweeper.stop()
	e.finalized = true
	for o := e.window.any(); o != nil; o = e.window.any() {
		e.window.remove(o)
		e.forget(o, now, out)
	}
	out.closed = e.finalizing == 0
}

// detachIfDone detaches the engine when the intake is closed and all is finished.
func (e *engine) detachIfDone() {
	e.mu.Lock()
	e.intake.mu.Lock()
	done := e.intake.closed && e.running.n+e.scheduler.pending()+e.intake.arrived.n == 0
	e.intake.mu.Unlock()
	e.mu.Unlock()
	if done {
		e.detach()
	}
}

// detach ends the heeding of signals, after which the sink does not know of the
// engine any more.
func (e *engine) detach() {
	e.mu.Lock()
	already := e.detached
	e.detached = true
	e.mu.Unlock()
	if already {
		return
	}
	e.rules.detach()
	for i := range e.laneRules {
		e.laneRules[i].detach()
	}
	e.resumeOn.detach()
	if e.undrain != nil {
		e.undrain()
	}
}

// Pause keeps further operations from starting; running ones go on and Enqueue
// still accepts. It raises [SignalPaused] if the coordinator was not paused.
func (e *engine) Pause() { e.setPaused(true, SignalPaused) }

// Resume ends a Pause. It raises [SignalResumed] if the coordinator was paused.
func (e *engine) Resume() { e.setPaused(false, SignalResumed) }

func (e *engine) setPaused(paused bool, signal string) {
	e.mu.Lock()
	changed := e.paused != paused
	e.paused = paused
	e.kick()
	e.mu.Unlock()
	if changed {
		e.sink.RaiseKey(signal, e.name)
	}
}

// SetMaxConcurrency changes how many operations may run at once. More may start
// at once; fewer takes effect as running ones finish. If then bodies would wait
// for this coordinator in vain, because their own operations have what slots are
// left, these waits return [ErrWouldDeadlock], the newest first, until the rest
// can end. It returns an error, and changes nothing, if n is less than 1.
func (e *engine) SetMaxConcurrency(n int) error {
	if n < 1 {
		return fmt.Errorf("core: SetMaxConcurrency(%d): at least one operation must be able to run", n)
	}
	e.mu.Lock()
	lowered := n < e.limit
	e.limit = n
	e.kick()
	e.mu.Unlock()
	if lowered {
		refuseStuck(e)
	}
	return nil
}

// Cancel cancels an operation. A pending one does not run; a running one has its
// context cancelled with that cause, nil meaning [ErrCancelled], and counts as
// cancelled if its body then returns an error. Cancel does not wait for the body.
// It reports false if no such operation is pending or running.
func (e *engine) Cancel(id OperationID, cause error) bool {
	if cause == nil {
		cause = ErrCancelled
	}
	var out outcome
	e.mu.Lock()
	e.collect()
	o := e.index.get(id)
	status := Status(0)
	if o != nil {
		status = o.status
	}
	switch status {
	case StatusPending:
		e.withdraw(o, StatusCancelled, cause, e.clock.now(), &out)
	case StatusRunning:
		o.cancelling(cause)
	}
	e.mu.Unlock()
	if status == StatusRunning {
		(*operationContext)(o).real().cancel(cause)
	}
	e.settle(&out)
	return status == StatusPending || status == StatusRunning
}

// await waits for an operation to end and returns its error. When ctx ends first
// it returns its cause.
func (e *engine) await(ctx context.Context, o *Operation) error {
	e.mu.Lock()
	if o.status&StatusFinished != 0 {
		defer e.mu.Unlock()
		return o.err
	}
	if o.done == nil {
		o.done = make(chan struct{})
	}
	e.mu.Unlock()
	if err := (awaited{engine: e, on: o}).wait(ctx, o.done); err != nil {
		return err
	}
	return o.err
}

// see waits for an operation to end and returns its error; when it stops waiting
// before that, it cancels the operation.
func (e *engine) see(ctx context.Context, o *Operation) error {
	err := e.await(ctx, o)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		e.Cancel(o.id, context.Cause(ctx)) // does nothing if it is finished
	case err == ErrWouldDeadlock:
		e.Cancel(o.id, err)
	}
	return err
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
	e.mu.Lock()
	e.collect()
	head := e.window.finished.head
	if head == nil || e.window.maxAge == 0 {
		return
	}
	now := e.clock.now()
	if head.finished > now-e.window.maxAge {
		return
	}
	var out outcome
	e.sweep(now, &out)
	e.mu.Unlock()
	e.settle(&out)
	e.mu.Lock()
}
