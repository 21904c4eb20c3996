package batching

import (
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Batcher collects items into batches and hands them to a function that flushes
// a batch. Make one with [New]. All methods are safe for concurrent use, from the
// function too, where those that would wait for the very flush that calls them return
// [core.ErrWouldDeadlock]: it is recognised by its context or its goroutine. A flush
// that waits for somebody else who waits in Do or for room is not; so do not.
//
// A batcher that holds no items owns no goroutine and needs no closing.
type Batcher[T any] struct{ *engine[T, struct{}] }

// A ResultBatcher is a [Batcher] whose function returns a result for each item. Make
// one with [NewResultBatcher].
type ResultBatcher[In, Out any] struct{ *engine[In, Out] }

var (
	_ core.Lifecycle = (*Batcher[int])(nil)
	_ core.Lifecycle = (*ResultBatcher[int, int])(nil)
)

// New makes a batcher that flushes batches with flush, or says what is wrong with the
// options. It starts nothing.
//
// Flush is called with one to [Options.MaxSize] items in the order in which they
// came; the slice is its own, to keep and to change. The context has an operation of
// its own, see [core.OperationFrom], whose key is that of the items, and the values of
// no caller. It ends when the batch is cancelled: by Cancel, by Close, or because all
// who waited for its items have left. An error means that no item was flushed, unless
// it is or wraps [ItemErrors]; so does a panic, which becomes a [core.PanicError].
func New[T any](flush core.Work[[]T], opts Options[T]) (*Batcher[T], error) {
	if flush == nil {
		return nil, errNoFlush
	}
	x, err := newEngine(func(ctx context.Context, batch []T) ([]struct{}, error) {
		return nil, flush(ctx, batch)
	}, opts)
	if err != nil {
		return nil, err
	}
	return &Batcher[T]{x}, nil
}

// NewResultBatcher is [New] for a function that returns a result for each item: as many
// as there are items, in their order. Another number is an error for all of them,
// unless there is one anyway. With [ItemErrors], which have a place for every item,
// the results of the others count.
func NewResultBatcher[In, Out any](flush core.ResultWork[[]In, []Out], opts Options[In]) (*ResultBatcher[In, Out], error) {
	if flush == nil {
		return nil, errNoFlush
	}
	x, err := newEngine(flush, opts)
	if err != nil {
		return nil, err
	}
	x.results = true
	return &ResultBatcher[In, Out]{x}, nil
}

var errNoFlush = errors.New("batching: there must be a function to flush batches, not nil")

// Do brings an item, as Enqueue does, and waits until its batch has been flushed; it
// returns the error of the item: what the flush returned, or why there was none. A
// deadline of ctx lets the batch be flushed early enough, see [Options.FlushMargin].
//
// When ctx ends first, Do returns its cause. If the item still waits, it is taken out
// of its batch and counts as cancelled; if it is being flushed, that goes on unless
// nobody wants it any more. Called from a flush of this batcher Do returns
// [core.ErrWouldDeadlock].
func (b *Batcher[T]) Do(ctx context.Context, item T) error {
	_, err := b.engine.do(ctx, item)
	return err
}

// Do brings an item and returns its result; see [Batcher.Do].
func (b *ResultBatcher[In, Out]) Do(ctx context.Context, item In) (Out, error) {
	return b.engine.do(ctx, item)
}
