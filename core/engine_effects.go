package core

import "fmt"

// engineEffects are what a change under the engine's lock entails for others. They are
// done when it is released.
type engineEffects struct {
	cancels []cancelled     // contexts to be cancelled
	closing []chan struct{} // to be closed, for those that wait for it
	after   effects         // of signals that have left with their operations
	done    []told          // that OnDone is to be called for
	final   []told          // the same of OnFinalized
	classes []classTold     // that are throttled, or are not any more
	ends    []chan struct{} // to be closed after all that: of flushes, and of Close
}

func (out *engineEffects) close(c chan struct{}) { out.closing = append(out.closing, c) }

// empty reports whether there is nothing to settle, as after most changes.
func (out *engineEffects) empty() bool {
	return len(out.cancels)+len(out.closing)+len(out.ends)+len(out.after.wakes) == 0 && !out.foreign()
}

// foreign reports whether settling it runs foreign code.
func (out *engineEffects) foreign() bool {
	return len(out.final)+len(out.done)+len(out.classes) > 0 || out.after.foreign()
}

// cancelled is an operation or a group whose context is to be cancelled with that cause.
type cancelled struct {
	context interface{ cancelWith(cause error) }
	cause   error
}

// classTold is a class that is throttled, or is not any more, which a signal tells.
type classTold struct {
	kind   Kind[ClassChange]
	change ClassChange
}

// told is an operation that has ended, before its waiters are answered, or has left the
// window, and the hooks to call.
type told struct {
	operation *Operation
	snapshot  Snapshot
	hooks     []*hook[Snapshot]
}

// settleRest is settle as a deferred function.
func (e *engine) settleRest(out *engineEffects) {
	endProcess(recover())
	e.settle(out)
}

// endProcess ends the process if a function of the engine has panicked, which has been
// recovered. The engine may be locked, and its state is not known: whoever locked it would
// wait for ever. The panic is on a goroutine of its own, so that nobody recovers it.
func endProcess(panicked any) {
	if panicked != nil {
		go panic(fmt.Sprintf("core: a fault of this library, please report it: %v\n\n%s", panicked, stackTrace()))
		select {}
	}
}

// unlock releases mu and does what follows for others from what has been changed.
func (e *engine) unlock() {
	var out engineEffects
	e.unlockTo(&out)
}

// unlockTo is unlock with effects that are empty but may have room, and are left so.
func (e *engine) unlockTo(out *engineEffects) {
	if e.out.empty() {
		e.mu.Unlock()
		return
	}
	e.out, *out = *out, e.out
	e.mu.Unlock()
	e.settle(out)
}

// settle does what effects entail, which are left empty. No lock is held. The order is:
//
//  1. cancels: bodies see at once that they are cancelled.
//  2. closing: waiters that need nothing of what follows go on.
//  3. after, without its tells: what waited for signals that have left goes on.
//  4. done: OnDone, and then the waits for these operations end.
//  5. the tells in after: watermarks, and handlers of signals that have been released.
//  6. classes: signals that say that they are throttled, or free.
//  7. final: OnFinalized.
//  8. ends: flushes, and Close, which wait for all of that.
//
// From 4 on, foreign code runs. It may end the goroutine, so each of these has a call of its
// own, and a deferred call does the rest.
func (e *engine) settle(out *engineEffects) {
	for _, c := range out.cancels {
		c.context.cancelWith(c.cause)
	}
	out.cancels = emptied(out.cancels)
	for _, c := range out.closing {
		close(c)
	}
	out.closing = emptied(out.closing)
	if len(out.after.copies)+len(out.after.wakes) > 0 {
		after := out.after // which escapes
		after.settleOwn()
		out.after = after
	}
	if out.foreign() {
		e.settleForeign(out)
		return
	}
	if len(out.ends) > 0 {
		defer func() { // also if a function of OnClosed ends the goroutine
			for _, c := range out.ends {
				close(c)
			}
			out.ends = emptied(out.ends)
		}()
		e.detachIfDone()
	}
}

// settleForeign does what runs foreign code, and then the rest, even if that ends
// the goroutine.
func (e *engine) settleForeign(out *engineEffects) {
	defer e.settleRest(out)
	if ended := out.done; len(ended) > 0 {
		out.done = nil
		defer e.toldAll(out, &e.telling, ended)
		engineFrame(e.number, func() { e.tell(ended) }) // for waits, OnDone counts as an operation of this engine
		return
	}
	if tells := out.after.tells; len(tells) > 0 {
		out.after.tells = nil
		each(tells, teller.tell)
		return
	}
	if len(out.classes) > 0 {
		told := out.classes[0]
		out.classes = out.classes[1:]
		told.kind.Raise(e.sink, told.change.Class, told.change)
		return
	}
	final := out.final
	out.final = nil
	defer e.toldAll(out, &e.finalizing, final)
	e.tell(final)
}

func (e *engine) tell(all []told) {
	each(all, func(t told) {
		t.snapshot.Parent = t.operation.Parent()
		deliver(t.hooks, false, &t.snapshot, &e.ledger.panics)
	})
}

// toldAll ends what counts these operations: that OnFinalized is called, which Close waits
// for, or that OnDone is. Then the waits for the operations end.
func (e *engine) toldAll(out *engineEffects, counter *int, all []told) {
	e.mu.Lock()
	e.out, *out = *out, e.out // what is left to do, and what answer adds
	*counter -= len(all)
	if counter == &e.telling {
		for _, t := range all {
			t.operation.marks &^= untold
			e.answer(t.operation)
		}
		e.breakCircle(e.clock.now()) // which is not looked for meanwhile
	}
	e.endClose()
	e.unlockTo(out)
}

// endClose lets Close return once the window is empty and all have been told. mu is held.
func (e *engine) endClose() {
	if e.finalized && e.finalizing+e.telling == 0 {
		e.out.ends = append(e.out.ends, e.closed)
	}
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
	for i := range e.classes {
		e.classes[i].detach()
		e.classes[i].trialOn.detach()
	}
	e.resumeOn.detach()
	if e.undrain != nil {
		e.undrain()
	}
	e.tellClosed(hooks)
}

func (e *engine) tellClosed(hooks []*hook[struct{}]) {
	deliver(hooks, false, new(struct{}), &e.ledger.panics)
}

func emptied[T any](s []T) []T {
	clear(s)
	return s[:0]
}
