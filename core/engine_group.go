package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

	mu   sync.Mutex // taken last
	left int
	over bool // Wait has returned
	cut  bool // something was cancelled because the context has ended
	errs []error
	more int     // how many errors are only counted
	late []error // errors of cancelled operations; most say only that the operation was cancelled
}

// groupOf returns the group of an operation, or nil.
func groupOf(o *Operation) *group {
	if o.marks&grouped == 0 {
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
		if !errors.Is(err, context.Canceled) && !errors.Is(err, reason) {
			errs = append(errs, err)
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("core: and %d more errors", more))
	}
	return errors.Join(errs...)
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
	g.mu.Lock()
	ended := g.left == 0
	g.over = g.over || ended
	g.mu.Unlock()
	on := awaited{engine: e, group: g}
	switch {
	case ended:
		e.mu.Unlock()
		return nil
	case by != nil && by.status&StatusAlive != 0:
		return e.awaitOwn(context.Background(), by, on, &g.awaited, false)
	}
	idle := make(chan struct{})
	g.idle = append(g.idle, idle)
	e.mu.Unlock()
	return on.wait(context.WithoutCancel(g.parent), idle)
}

// enter counts an item that is about to be enqueued.
func (g *group) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return ErrClosed
	case g.ctx.Err() != nil:
		return context.Cause(g.ctx)
	}
	g.left++
	return nil
}

// leave counts an item for which the group no longer waits. The engine's mu and mu are held.
func (g *group) leave() {
	if g.left--; g.left > 0 {
		return
	}
	g.over = g.over || len(g.idle)+len(g.awaited) > 0
	for _, idle := range g.idle {
		g.engine.out.close(idle)
	}
	g.idle = nil
	g.engine.endWaits(&g.awaited)
}

// ended records the end of an operation of the group. The engine's mu is held.
func (g *group) ended(o *Operation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	stopped := g.halted != nil || g.ctx.Err() != nil
	switch err := o.err; {
	case o.status == StatusSucceeded:
	case o.status == StatusCancelled && stopped:
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
	g.leave()
}

func (g *group) cancelWith(cause error) { g.cancel(cause) }

// abort cancels the operations of the group.
func (g *group) abort() {
	g.engine.cancelAll(StatusAlive, g, context.Cause(g.ctx))
}
