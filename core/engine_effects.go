// This file decides in which order the effects of a change happen, after the lock is released.

package core

import (
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// engineEffects are the effects that a change under the engine's lock has on others. They
// run after the lock is released.
type engineEffects struct {
	cancels []cancelled     // contexts to cancel
	first   chan struct{}   // the first channel to close for a goroutine that waits, or nil
	closing []chan struct{} // the other such channels
	after   hook.Effects    // effects of signals that have left with their operations
	done    []told          // operations for which OnDone is to be called
	final   []told          // operations for which OnFinalized is to be called
	classes []classTold     // classes that are throttled, or no longer are
	ends    []chan struct{} // channels of flushes and of Close, to close after all of the above
}

func (out *engineEffects) close(c chan struct{}) {
	if out.first == nil { // most often there is no other, and a list would be made for each
		out.first = c
	} else {
		out.closing = append(out.closing, c)
	}
}

// empty reports whether there is nothing to settle. That is so after most changes.
func (out *engineEffects) empty() bool {
	return out.first == nil && len(out.cancels)+len(out.ends)+len(out.final)+len(out.done)+len(out.classes) == 0 && out.after.Empty()
}

// foreign reports whether settle runs foreign code.
func (out *engineEffects) foreign() bool {
	return len(out.final)+len(out.done)+len(out.classes) > 0 || out.after.Foreign()
}

// cancelled is an operation or a group whose context is to be cancelled, and the cause.
type cancelled struct {
	context interface{ cancelWith(cause error) }
	cause   error
}

// classTold is a class for which a signal is to say that it is throttled, or no longer is.
type classTold struct {
	kind   signals.Kind[ClassChange]
	change ClassChange
}

// told is an operation that has ended or has left the window, with the hooks to call. Its
// waiters are answered after that.
type told struct {
	operation *Operation
	snapshot  Snapshot
	hooks     []*hook.Hook[Snapshot]
}

// endProcess ends the process after a function of the engine has panicked and the panic
// was recovered. The engine may be locked, and its state is not known: its next user would
// wait for ever. It panics on a new goroutine, so that nobody recovers the panic.
func endProcess(panicked any) {
	if panicked != nil {
		go panic(fmt.Sprintf("core: a fault of this library, please report it: %v\n\n%s", panicked, stackTrace()))
		select {}
	}
}

// unlock releases mu and settles the effects of what has changed.
func (e *engine) unlock() {
	var out engineEffects
	e.unlockTo(&out)
}

// unlockTo is unlock with a buffer for effects. The buffer is empty before and after the
// call.
func (e *engine) unlockTo(out *engineEffects) {
	if e.out.empty() {
		e.mu.Unlock()
		return
	}
	e.out, *out = *out, e.out
	e.mu.Unlock()
	e.settle(out)
}

// settle runs the effects and leaves them empty. No lock is held. The order is:
//
//  1. cancels: bodies see at once that they are cancelled.
//  2. first and closing: waiters that need none of the following steps go on.
//  3. after, without its tells: work that waited for signals to leave goes on.
//  4. done: OnDone is called, and then the waits for these operations end.
//  5. the tells in after: watermarks, and handlers of signals that have been released.
//  6. classes: signals say that classes are throttled, or free.
//  7. final: OnFinalized.
//  8. ends: flushes and Close, which wait for all of this, return.
//
// From 4 on, foreign code runs. Each of these steps runs in its own call, because it may add effects.
func (e *engine) settle(out *engineEffects) {
	for _, c := range out.cancels {
		c.context.cancelWith(c.cause)
	}
	out.cancels = emptied(out.cancels)
	if out.first != nil {
		close(out.first)
		out.first = nil
		for _, c := range out.closing {
			close(c)
		}
		out.closing = emptied(out.closing)
	}
	if out.after.Waits() {
		after := out.after // which escapes
		after.SettleOwn()
		out.after = after
	}
	if out.foreign() {
		e.settleForeign(out)
		return
	}
	if len(out.ends) > 0 {
		e.detachIfDone()
		for _, c := range out.ends {
			close(c)
		}
		out.ends = emptied(out.ends)
	}
}

// settleForeign runs a step with foreign code, and then the rest.
func (e *engine) settleForeign(out *engineEffects) {
	defer func() { endProcess(recover()) }()
	switch {
	case len(out.done) > 0:
		ended := out.done
		out.done = nil
		engineFrame(e.number, func() { e.tell(ended) }) // a wait inside OnDone counts as a wait inside an operation of this engine
		e.toldAll(out, &e.telling, ended)
	case len(out.after.Tells) > 0:
		for _, t := range out.after.TakeTells() {
			t.Tell()
		}
	case len(out.classes) > 0:
		told := out.classes[0]
		out.classes = out.classes[1:]
		told.kind.Raise(e.sink, told.change.Class, told.change)
	default:
		final := out.final
		out.final = nil
		e.tell(final)
		e.toldAll(out, &e.finalizing, final)
	}
	e.settle(out)
}

func (e *engine) tell(all []told) {
	for _, t := range all {
		t.snapshot.Parent = t.operation.Parent()
		hook.Deliver(t.hooks, false, &t.snapshot, e.scope.Engine().Panics())
	}
}

// toldAll lowers the counter of operations for which OnFinalized or OnDone is being called.
// Close waits for the first. Then the waits for the operations end.
func (e *engine) toldAll(out *engineEffects, counter *int, all []told) {
	e.mu.Lock()
	e.out, *out = *out, e.out // the remaining effects, and those that answer adds
	*counter -= len(all)
	if counter == &e.telling {
		for _, t := range all {
			t.operation.sched.Flags &^= untold
			e.answer(t.operation)
		}
		e.breakCircle(e.clock.Now()) // nothing has looked for circles while OnDone ran
	}
	e.endClose()
	e.unlockTo(out)
}

// endClose lets Close return when the window is empty and all callbacks have returned. mu
// is held.
func (e *engine) endClose() {
	if e.finalized && e.finalizing+e.telling == 0 {
		e.out.ends = append(e.out.ends, e.closed)
	}
}

// detachIfDone removes the gates when no operation will start any more. After that, the
// sink does not refer to the engine.
func (e *engine) detachIfDone() {
	e.mu.Lock()
	detach := !e.detached && (e.slots.Closing || e.intake.closed && e.unfinished() == 0) // the intake was closed with mu held
	e.detached = e.detached || detach
	hooks := e.onClosed.Snapshot()
	e.mu.Unlock()
	if !detach {
		return
	}
	e.rules.detach()
	for i := range e.lanes {
		e.lanes[i].detach()
	}
	for i := range e.classes {
		e.classes[i].detach()
		e.classes[i].trialOn.Stop()
	}
	e.resumeOn.Stop()
	if e.undrain != nil {
		e.undrain()
	}
	e.tellClosed(hooks)
}

func (e *engine) tellClosed(hooks []*hook.Hook[struct{}]) {
	hook.Deliver(hooks, false, new(struct{}), e.scope.Engine().Panics())
}

func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// answer ends the waits for an operation that has ended. mu is held.
func (e *engine) answer(o *Operation) {
	if o.done != nil {
		e.out.close(o.done)
	}
	if g := groupOf(o); g != nil {
		g.ended(o)
	}
	if o.sched.Flags&awaitedOwn != 0 {
		e.endWaits(e.awaited[o])
		delete(e.awaited, o)
	}
	e.flushes = slices.DeleteFunc(e.flushes, func(f *flush) bool {
		over := f.ended(o)
		if over {
			e.out.ends = append(e.out.ends, f.done)
		}
		return over
	})
}
