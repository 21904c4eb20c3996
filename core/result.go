// This file decides who gets the result of an operation.

package core

import (
	"context"
	"iter"
)

// A ResultCoordinator is a [Coordinator] whose operations have results. A result is kept
// as long as its operation is in the window. A [Future] keeps its result longer, as long as
// you hold the Future. The methods of the zero value panic: make a ResultCoordinator with
// [NewResultCoordinator] or [NewKeyedResultCoordinator].
type ResultCoordinator[In, Out any] struct {
	Control
	source[In, Out]
}

var (
	_ Inspector     = (*ResultCoordinator[int, int])(nil)
	_ Enqueuer[int] = (*ResultCoordinator[int, int])(nil)
)

// NewResultCoordinator makes a coordinator whose operations have results, or says
// what is wrong with the options.
func NewResultCoordinator[In, Out any](work ResultWork[In, Out], opts Options) (*ResultCoordinator[In, Out], error) {
	return newResultCoordinator(nil, work, opts)
}

// NewKeyedResultCoordinator is [NewResultCoordinator] with keys; see
// [NewKeyedCoordinator].
func NewKeyedResultCoordinator[In, Out any, K ~string](key func(In) K, work ResultWork[In, Out], opts Options) (*ResultCoordinator[In, Out], error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	return newResultCoordinator(text, work, opts)
}

func newResultCoordinator[In, Out any](key func(In) string, work ResultWork[In, Out], opts Options) (*ResultCoordinator[In, Out], error) {
	if work == nil {
		return nil, errNoWork
	}
	e, err := newEngine(opts, key != nil)
	if err != nil {
		return nil, err
	}
	e.bodies = work
	return &ResultCoordinator[In, Out]{Control{e}, source[In, Out]{e, key, e.front()}}, nil
}

// Lane returns a view of the coordinator that puts items into that lane; see
// [Coordinator.Lane].
//
//ephemeral:lane {name}
//ephemeral:view
func (c *ResultCoordinator[In, Out]) Lane(name string) *ResultCoordinator[In, Out] {
	return &ResultCoordinator[In, Out]{c.Control, source[In, Out]{c.engine, c.key, c.door.inLane(c.engine, name)}}
}

// Class returns a view of the coordinator that puts items into that class; see
// [Coordinator.Class].
//
//ephemeral:class {name}
//ephemeral:view
func (c *ResultCoordinator[In, Out]) Class(name string) *ResultCoordinator[In, Out] {
	return &ResultCoordinator[In, Out]{c.Control, source[In, Out]{c.engine, c.key, c.door.inClass(c.engine, name)}}
}

// Cost returns a view of the coordinator whose items cost n; see [Coordinator.Cost].
//
//ephemeral:view
func (c *ResultCoordinator[In, Out]) Cost(n int) *ResultCoordinator[In, Out] {
	return &ResultCoordinator[In, Out]{c.Control, source[In, Out]{c.engine, c.key, c.door.costing(c.engine, n)}}
}

// Do enqueues an item, waits until its operation is finished, and returns the result and
// the error of the body; it may return both. If ctx ends first, there is no result. See
// [Coordinator.Do].
func (c *ResultCoordinator[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	t := c.newTask(in, watched)
	err := c.do(ctx, &t.Operation, c.door)
	if err != nil && (ctx.Err() != nil || !c.ended(&t.Operation)) {
		return *new(Out), err // the body may still write t.out
	}
	return t.out, err
}

// Wait waits until an operation is finished. It returns the result and the error of the
// body, or the reason why the body did not run; see [Coordinator.Wait].
func (c *ResultCoordinator[In, Out]) Wait(ctx context.Context, id OperationID) (Out, error) {
	o, err := c.wait(ctx, id)
	if o == nil {
		return *new(Out), err
	}
	return result(o, &o.body.(*task[In, Out]).out, err)
}

// result returns the result and the error of an operation. If the operation has not ended,
// it returns why the wait has ended.
func result[Out any](o *Operation, out *Out, err error) (Out, error) {
	if err != nil && !o.engine.ended(o) {
		return *new(Out), err
	}
	return *out, o.err
}

// Results yields the operations that have succeeded and that q selects, each with its
// result; see [Control.Operations].
func (c *ResultCoordinator[In, Out]) Results(q OperationQuery) iter.Seq2[Snapshot, Out] {
	return func(yield func(Snapshot, Out) bool) {
		if q.Status != 0 && q.Status&StatusSucceeded == 0 {
			return
		}
		q.Status = StatusSucceeded
		var out Out
		found := c.operations(q, func(o *Operation) { out = o.body.(*task[In, Out]).out })
		for s := range found {
			if !yield(s, out) {
				return
			}
		}
	}
}

// A Future gives the result of an operation when it is there. It is safe for concurrent
// use and needs no closing. It keeps the result, and the last state of the operation, as
// long as your code refers to it.
type Future[Out any] struct {
	operation *Operation
	out       *Out
}

// ID is the id of the operation, for status pages.
func (f *Future[Out]) ID() OperationID { return f.operation.owner.ID }

// Done returns a channel that is closed when the operation is finished. After that, Wait
// returns at once.
func (f *Future[Out]) Done() <-chan struct{} {
	e := f.operation.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return f.operation.whenDone()
}

// Wait waits until the operation is finished. It returns its result and the error of its
// body, or the reason why the body did not run. It may be called many times. If ctx ends
// first, Wait returns the cause of ctx, and the operation goes on. A body that calls Wait
// is suspended, or gets [ErrWouldDeadlock], as in [Coordinator.Do].
func (f *Future[Out]) Wait(ctx context.Context) (Out, error) {
	return result(f.operation, f.out, f.operation.engine.waitFor(ctx, f.operation))
}
