package batching

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// A Batcher collects items into batches and hands them to a function that flushes
// a batch. Make one with [New]. All methods are safe for concurrent use.
//
// The function may call them too. If a flush calls a method that would wait for this same
// flush, the method returns [core.ErrWouldDeadlock]. The batcher recognises a flush by its
// context or its goroutine. It does not recognise other goroutines: do not let a flush wait
// for a goroutine that waits in Do or Enqueue, because both then wait without end.
//
// A batcher that holds no items owns no goroutine and needs no closing.
type Batcher[T any] struct{ *engine[T, struct{}] }

// A ResultBatcher is a [Batcher] whose function returns a result for each item. Make
// one with [NewResultBatcher].
type ResultBatcher[In, Out any] struct{ *engine[In, Out] }

var (
	_ core.Inspector  = (*Batcher[int])(nil)
	_ inspect.Actions = (*Batcher[int])(nil)
	_ core.Inspector  = (*ResultBatcher[int, int])(nil)
	_ inspect.Actions = (*ResultBatcher[int, int])(nil)
)

// New makes a batcher that flushes batches with flush. It returns an error if flush is nil or
// an option is wrong. It starts no goroutine.
//
// Flush gets one to [Options.MaxSize] items in the order in which they came. It may keep and
// change the slice. Its context has an operation with the key of the items, see
// [core.OperationFrom], and no values of callers. The context ends when the batch is
// cancelled: by Cancel, Abort or Close, or because all callers that waited for its items have
// left. If flush returns an error, no item was flushed, unless the error is or wraps
// [ItemErrors]. If flush panics, no item was flushed, and the error is a [core.PanicError].
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

// NewResultBatcher is [New] for a function that returns one result for each item, in the
// order of the items. If it returns another number of results and no error, all items fail.
// If it returns [ItemErrors], it also returns a result for each item: the results of failed
// items are ignored.
func NewResultBatcher[In, Out any](flush core.ResultWork[[]In, []Out], opts Options[In]) (*ResultBatcher[In, Out], error) {
	x, err := newEngine(flush, opts)
	if err != nil {
		return nil, err
	}
	return &ResultBatcher[In, Out]{x}, nil
}

// Do enqueues an item like Enqueue, and waits until its batch has been flushed. It returns the
// error of the item: the error of the flush, or the reason why there was no flush. If ctx has
// a deadline, the batch is due halfway to the deadline at the latest.
//
// If ctx ends first, Do returns its cause. If the flush has not begun, the item leaves its
// batch and counts as Cancelled. If the flush has begun, it goes on as long as a caller waits
// for another item of the batch or an item came by Enqueue; otherwise it is cancelled. If a
// flush of this batcher calls Do, Do returns [core.ErrWouldDeadlock].
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	_, err := b.do(ctx, item)
	return err
}

// Do enqueues an item and returns its result; see [Batcher.Do].
func (b *ResultBatcher[In, Out]) Do(ctx context.Context, item In) (Out, error) {
	return b.do(ctx, item)
}
