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
type ResultCoordinator[T, R any] struct {
	Control
	source[T, R]
}

var (
	_ Inspector     = (*ResultCoordinator[int, int])(nil)
	_ Enqueuer[int] = (*ResultCoordinator[int, int])(nil)
)

// NewResultCoordinator makes a coordinator whose operations have results, or says
// what is wrong with the options.
func NewResultCoordinator[T, R any](work ResultWork[T, R], opts Options) (*ResultCoordinator[T, R], error) {
	return newResultCoordinator(nil, work, opts)
}

// NewKeyedResultCoordinator is [NewResultCoordinator] with keys; see
// [NewKeyedCoordinator].
func NewKeyedResultCoordinator[T, R any, K ~string](key func(T) K, work ResultWork[T, R], opts Options) (*ResultCoordinator[T, R], error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	return newResultCoordinator(text, work, opts)
}

func newResultCoordinator[T, R any](key func(T) string, work ResultWork[T, R], opts Options) (*ResultCoordinator[T, R], error) {
	if work == nil {
		return nil, errNoWork
	}
	e, err := newEngine(opts, key != nil)
	if err != nil {
		return nil, err
	}
	e.bodies = work
	return &ResultCoordinator[T, R]{Control{e}, source[T, R]{e, key, e.front()}}, nil
}

// Lane returns a view of the coordinator that puts items into that lane; see
// [Coordinator.Lane].
//
//ephemeral:lane {name}
//ephemeral:view
func (c *ResultCoordinator[T, R]) Lane(name string) *ResultCoordinator[T, R] {
	view := *c
	view.door = c.door.inLane(c.engine, name)
	return &view
}

// Class returns a view of the coordinator that puts items into that class; see
// [Coordinator.Class].
//
//ephemeral:class {name}
//ephemeral:view
func (c *ResultCoordinator[T, R]) Class(name string) *ResultCoordinator[T, R] {
	view := *c
	view.door = c.door.inClass(c.engine, name)
	return &view
}

// Cost returns a view of the coordinator whose items cost n; see [Coordinator.Cost].
//
//ephemeral:view
func (c *ResultCoordinator[T, R]) Cost(n int) *ResultCoordinator[T, R] {
	view := *c
	view.door = c.door.costing(c.engine, n)
	return &view
}

// Submit is Enqueue for callers that want the result later. The Future keeps the result,
// even after the operation has left the window.
func (c *ResultCoordinator[T, R]) Submit(ctx context.Context, item T) (*Future[R], error) {
	return c.submit(ctx, item)
}

// Do enqueues an item, waits until its operation is finished, and returns the result and
// the error of the body; it may return both. If ctx ends first, there is no result. See
// [Coordinator.Do].
func (c *ResultCoordinator[T, R]) Do(ctx context.Context, in T) (R, error) {
	t := c.newTask(in, watched)
	err := c.engine.do(ctx, &t.Operation, c.door)
	if err != nil && (ctx.Err() != nil || !c.engine.ended(&t.Operation)) {
		return *new(R), err // the body may still write t.out
	}
	return t.out, err
}

// Wait waits until an operation is finished. It returns the result and the error of the
// body, or the reason why the body did not run; see [Coordinator.Wait].
func (c *ResultCoordinator[T, R]) Wait(ctx context.Context, id OperationID) (R, error) {
	o, err := c.engine.wait(ctx, id)
	if o == nil {
		return *new(R), err
	}
	return result(o, &o.body.(*task[T, R]).out, err)
}

// result returns the result and the error of an operation. If the operation has not ended,
// it returns why the wait has ended.
func result[R any](o *Operation, out *R, err error) (R, error) {
	if err != nil && !o.engine.ended(o) {
		return *new(R), err
	}
	return *out, o.err
}

// Results yields the operations that have succeeded and that q selects, each with its
// result; see [Control.Operations]. [Snapshot].Item is nil here, because the item of a success is not kept: the key, or a field of the
// result, says what a result belongs to.
func (c *ResultCoordinator[T, R]) Results(q OperationQuery) iter.Seq2[Snapshot, R] {
	return func(yield func(Snapshot, R) bool) {
		if q.Status != 0 && q.Status&StatusSucceeded == 0 {
			return
		}
		q.Status = StatusSucceeded
		var out R
		found := c.engine.operations(q, func(o *Operation) { out = o.body.(*task[T, R]).out })
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
type Future[R any] struct {
	operation *Operation
	out       *R
}

// ID is the id of the operation, for [Control.Explain], [Control.Cancel] and status pages.
func (f *Future[R]) ID() OperationID { return f.operation.owner.ID }

// Done returns a channel that is closed when the operation is finished. After that, Wait
// returns at once.
func (f *Future[R]) Done() <-chan struct{} {
	e := f.operation.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return f.operation.whenDone()
}

// Wait waits until the operation is finished. It returns its result and the error of its
// body, or the reason why the body did not run. It may be called many times. If ctx ends
// first, Wait returns the cause of ctx, and the operation goes on. A body that calls Wait
// is suspended, or gets [ErrWouldDeadlock], as in [Coordinator.Do].
func (f *Future[R]) Wait(ctx context.Context) (R, error) {
	return result(f.operation, f.out, f.operation.engine.waitFor(ctx, f.operation))
}
