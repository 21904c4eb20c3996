package core

import (
	"context"
	"errors"
)

// Work is what a coordinator does with an item. The context carries the values
// of the context the item was enqueued with and the [Operation]; it ends when the
// operation is cancelled by id or with its coordinator, not when the enqueuer's
// context does. An error makes the operation failed; a panic does too, as a
// [PanicError].
type Work[T any] func(ctx context.Context, item T) error

// An Enqueuer is what a producer needs to know of a coordinator.
type Enqueuer[T any] interface {
	Enqueue(ctx context.Context, item T) (OperationID, error)
	TryEnqueue(item T) (OperationID, error)
}

// A Coordinator runs work for items, a bounded number at once, in the order in
// which they were enqueued, and remembers the operations for a while: what they
// stored, what signals they raised, how they ended.
//
// An idle coordinator owns no goroutine and needs no closing, except that one
// that heeds signals of a shared sink, by CancelOn, DeferOn, ResumeOn or DrainOn,
// is kept alive by the sink until it is drained or closed. All methods are safe
// for concurrent use, from bodies and from handlers as well.
type Coordinator[T any] struct {
	*engine
	work Work[T]
}

var (
	_ Sensor        = (*Coordinator[int])(nil)
	_ Lifecycle     = (*Coordinator[int])(nil)
	_ Enqueuer[int] = (*Coordinator[int])(nil)
)

// NewCoordinator makes a coordinator, or says what is wrong with the options.
func NewCoordinator[T any](work Work[T], opts Options) (*Coordinator[T], error) {
	if opts.StopOnError {
		return nil, errors.New("core: Options.StopOnError is for ForEach and Map, not for a coordinator")
	}
	return newCoordinator(work, opts)
}

var errNoWork = errors.New("core: there must be work to do, not a nil function")

func newCoordinator[T any](work Work[T], opts Options) (*Coordinator[T], error) {
	if work == nil {
		return nil, errNoWork
	}
	e, err := newEngine(opts, new(fifo))
	if err != nil {
		return nil, err
	}
	return &Coordinator[T]{e, work}, nil
}

// task is an operation together with its item: the one allocation of an Enqueue.
type task[T any] struct {
	Operation
	work Work[T]
	item T
}

func (t *task[T]) run(ctx context.Context) error { return t.work(ctx, t.item) }

func (t *task[T]) discard() {
	var none T
	t.work, t.item = nil, none
}

func (c *Coordinator[T]) enqueue(ctx context.Context, item T, wait bool) (*Operation, error) {
	t := &task[T]{work: c.work, item: item}
	t.body = t
	if err := c.engine.enqueue(ctx, &t.Operation, wait); err != nil {
		return nil, err
	}
	return &t.Operation, nil
}

// Enqueue gives an item to the coordinator and returns the id of its operation,
// without waiting for it to run. While [Options.MaxQueued] items are pending it
// waits for room, first come first served, until ctx ends, whose cause it then
// returns. It returns [ErrClosed] after Complete, Drain or Close, a
// [RefusedError] while a signal matches CancelOn, and, called from a body of this
// coordinator when it would have to wait, [ErrWouldDeadlock].
func (c *Coordinator[T]) Enqueue(ctx context.Context, item T) (OperationID, error) {
	o, err := c.enqueue(ctx, item, true)
	return o.ID(), err
}

// TryEnqueue is Enqueue for those who do not wait: it returns [ErrFull] when there
// is no room.
func (c *Coordinator[T]) TryEnqueue(item T) (OperationID, error) {
	o, err := c.enqueue(context.Background(), item, false)
	return o.ID(), err
}

// Do enqueues an item, waits until its operation is finished, and returns its
// error: the body's, or why it did not run. When ctx ends, the operation is
// cancelled with the cause of ctx, which Do returns without waiting for the body.
// From a body of this coordinator it returns [ErrWouldDeadlock].
func (c *Coordinator[T]) Do(ctx context.Context, item T) error {
	if c.isOwn(ctx) {
		return ErrWouldDeadlock
	}
	o, err := c.enqueue(ctx, item, true)
	if err != nil {
		return err
	}
	err = c.await(ctx, o)
	if ctx.Err() != nil {
		c.Cancel(o.id, context.Cause(ctx)) // does nothing if it is finished
	}
	return err
}

// Wait waits until an operation is finished and returns its error, or that of the
// reason it did not run. It returns [ErrUnknown] for an id that is not, or no
// longer, in the window. When ctx ends first it returns its cause; the operation
// goes on. From a body of this coordinator it returns [ErrWouldDeadlock], unless
// the operation is finished.
func (c *Coordinator[T]) Wait(ctx context.Context, id OperationID) error {
	return c.wait(ctx, id)
}
