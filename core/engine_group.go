// This file decides when a group is over, and with which errors.

package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// group is the part of a Group that does not depend on the type of the items.
type group struct {
	engine *engine
	parent context.Context
	ctx    context.Context // ends with the parent, by StopOnError and by Wait
	cancel context.CancelCauseFunc
	after  func() bool
	stops  bool
	halted error // why the group has stopped; guarded by the engine's mu

	idle    []chan struct{} // channels of goroutines that wait for the group; guarded likewise
	awaited []*bodyWait     // waits of operations of the engine for the group; guarded likewise

	left atomic.Int64 // operations that have not ended; overBit is added when Wait has returned

	mu   sync.Mutex // taken last
	cut  bool       // something was cancelled because the context has ended
	errs []error
	more int     // how many errors are only counted
	late []error // errors of cancelled operations; most say only that the operation was cancelled
}

// groupOf returns the group of an operation, or nil.
func groupOf(o *Operation) *group {
	if o.sched.Flags&grouped == 0 {
		return nil
	}
	return o.body.(interface{ of() *group }).of()
}

// err joins the errors. It leaves out late errors that only say that the operation was cancelled
// with that reason.
func (g *group) err(reason error) error {
	g.mu.Lock()
	errs, late, more, cut := slices.Clone(g.errs), g.late, g.more, g.cut
	g.mu.Unlock()
	if cut {
		errs = slices.Insert(errs, 0, g.parentCause())
	}
	for _, err := range late {
		if !guard.Is(err, context.Canceled) && !guard.Is(err, reason) {
			errs = append(errs, err)
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("core: and %d more errors", more))
	}
	return errors.Join(errs...)
}

// stopped returns the error by which StopOnError has stopped the group, if o has not failed itself.
func (g *group) stopped(o *Operation) error {
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	if o != nil && o.status() == StatusFailed {
		return nil
	}
	return g.halted
}

// parentCause returns the cause of the context with which the group was made, or nil.
func (g *group) parentCause() error {
	if g.parent.Err() == nil {
		return nil
	}
	return context.Cause(g.parent)
}

// end ends the group's context.
func (g *group) end() {
	g.after()
	g.cancel(ErrCancelled)
}

// noteCut records that the end of the context has cancelled something.
func (g *group) noteCut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = true
}

// fail adds the error of an item that was not accepted.
func (g *group) fail(err error) {
	g.mu.Lock()
	g.add(err)
	g.mu.Unlock()
	if g.stops {
		g.halt(err)
	}
}

// maxErrors is how many errors a group joins; the others are counted. People read only the first
// few, and a million items can fail.
const maxErrors = 100

// add adds an error. mu is held.
func (g *group) add(err error) {
	if len(g.errs) < maxErrors {
		g.errs = append(g.errs, err)
	} else {
		g.more++
	}
}

// halt lets no more operations of the group start, and cancels the running ones with that cause.
func (g *group) halt(cause error) {
	g.engine.mu.Lock()
	g.halted = cmp.Or(g.halted, cause)
	g.engine.mu.Unlock()
	g.cancel(cause)
}

func (g *group) wait(by *Operation) error {
	e := g.engine
	e.mu.Lock()
	on := awaited{engine: e, group: g}
	switch {
	case g.left.CompareAndSwap(0, overBit) || g.left.Load() >= overBit:
		e.mu.Unlock()
		return nil
	case by != nil && by.status()&StatusAlive != 0:
		return e.awaitOwn(context.Background(), by, on, false)
	}
	idle := make(chan struct{})
	g.idle = append(g.idle, idle)
	e.mu.Unlock()
	return on.wait(context.WithoutCancel(g.parent), idle)
}

// enter counts an item that is about to be enqueued.
func (g *group) enter() error {
	switch {
	case g.left.Add(1) > overBit:
		g.left.Add(-1)
		return ErrClosed
	case g.ctx.Err() != nil:
		g.engine.mu.Lock()
		defer g.engine.unlock()
		g.leave()
		return context.Cause(g.ctx)
	}
	return nil
}

// overBit is added to the number of operations of a group whose Wait has returned.
const overBit = 1 << 62

// leave counts an item for which the group no longer waits. The engine's mu is held.
func (g *group) leave() {
	if g.left.Add(-1) > 0 || len(g.idle)+len(g.awaited) == 0 || !g.left.CompareAndSwap(0, overBit) {
		return
	}
	for _, idle := range g.idle {
		g.engine.out.close(idle)
	}
	g.engine.endWaits(g.awaited)
	g.idle, g.awaited = nil, nil
}

// ended records the end of an operation of the group. The engine's mu is held.
func (g *group) ended(o *Operation) {
	defer g.leave()
	if o.status() == StatusSucceeded {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	stopped := g.halted != nil || g.ctx.Err() != nil
	switch err := o.err; {
	case o.status() == StatusCancelled && stopped:
		g.cut = true
		if len(g.late) < maxErrors {
			g.late = append(g.late, err)
		}
	default:
		g.add(err)
		if g.stops && !stopped {
			g.halted = err
			out := &g.engine.out
			out.cancels = append(out.cancels, cancelled{g, err})
		}
	}
}

func (g *group) cancelWith(cause error) { g.cancel(cause) }

// abort cancels the operations of the group.
func (g *group) abort() {
	g.engine.cancelAll(StatusAlive, g, context.Cause(g.ctx))
}
