package batching

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Batcher collects items into batches and hands them to a function that flushes
// a batch. Make one with [New]. All methods are safe for concurrent use.
//
// The function may call them too. A call that would wait for the flush that makes it
// returns [core.ErrWouldDeadlock]; the flush is recognised by its context or its
// goroutine. If a flush waits for another goroutine that waits in Do or for room, that is
// not recognised, and neither returns.
//
// A batcher that holds no items owns no goroutine and needs no closing.
type Batcher[T any] struct{ *engine[T, struct{}] }

// A ResultBatcher is a [Batcher] whose function returns a result for each item. Make
// one with [NewResultBatcher].
type ResultBatcher[In, Out any] struct{ *engine[In, Out] }

var (
	_ core.Inspector  = (*Batcher[int])(nil)
	_ core.Controller = (*Batcher[int])(nil)
	_ core.Inspector  = (*ResultBatcher[int, int])(nil)
	_ core.Controller = (*ResultBatcher[int, int])(nil)
)

// New makes a batcher that flushes batches with flush, or returns what is wrong with the
// options. It starts nothing.
//
// Flush is called with one to [Options.MaxSize] items in the order in which they came. It
// may keep and change the slice. Its context has an operation, see [core.OperationFrom],
// whose key is that of the items, and the values of no caller. The context ends when the
// batch is cancelled: by Cancel, Abort or Close, or because all callers that waited for its
// items have left. An error means that no item was flushed, unless it is or wraps
// [ItemErrors]. A panic means the same, and becomes a [core.PanicError].
func New[T any](flush core.Work[[]T], opts Options[T]) (*Batcher[T], error) {
	var work core.ResultWork[[]T, []struct{}]
	if flush != nil {
		work = func(ctx context.Context, batch []T) ([]struct{}, error) {
			return make([]struct{}, len(batch)), flush(ctx, batch)
		}
	}
	x, err := newEngine(work, opts)
	if err != nil {
		return nil, err
	}
	return &Batcher[T]{x}, nil
}

// NewResultBatcher is [New] for a function that returns a result for each item, in the
// order of the items. Another number of results is an error of all items, unless the
// function returns an error anyway. If it returns [ItemErrors], it also returns a result
// for each item, and those of the items without an error count.
func NewResultBatcher[In, Out any](flush core.ResultWork[[]In, []Out], opts Options[In]) (*ResultBatcher[In, Out], error) {
	x, err := newEngine(flush, opts)
	if err != nil {
		return nil, err
	}
	return &ResultBatcher[In, Out]{x}, nil
}

// Do enqueues an item, as Enqueue does, and waits until its batch has been flushed. It
// returns the error of the item: what the flush returned, or why there was none. If ctx has
// a deadline, the batch is flushed when half of the time until then has passed, or earlier.
//
// When ctx ends first, Do returns its cause. If the flush has not begun, the item is taken
// out of its batch and counts as Cancelled. If it has begun, it goes on, unless no other
// caller waits for the batch and no item of it came by Enqueue. Called from a flush of this
// batcher Do returns [core.ErrWouldDeadlock].
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	_, err := b.do(ctx, item)
	return err
}

// Do enqueues an item and returns its result; see [Batcher.Do].
func (b *ResultBatcher[In, Out]) Do(ctx context.Context, item In) (Out, error) {
	return b.do(ctx, item)
}
