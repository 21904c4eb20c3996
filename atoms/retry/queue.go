package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// QueueOptions configure a [Queue]. The zero value is the default.
type QueueOptions struct {
	// Name tells queues apart: it is the Source of the signals that the work, and the
	// Retrier for it, raise. "" means the name of the Retrier.
	Name string
	// MaxConcurrency is how many items are worked on at once, not counting those that
	// back off; 0 means runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait for their first attempt before Enqueue
	// waits and TryEnqueue refuses; 0 means 1024, negative no queue: see
	// [core.Options].
	MaxQueued int
	// MaxSuspended is how many items that back off give up their slots: each further
	// item that backs off keeps its slot, so that the queue fills up while too much
	// fails. 0 means as many as MaxQueued, negative none.
	MaxSuspended int
	// MaxTracked is how many finished operations the queue still shows, besides
	// operations that wait and run, and the last 200 that failed; 0 means 200, negative
	// none, failed ones included.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Timeout is how long the work on an item may take, from its start, all attempts and
	// the time between them included; 0 or negative means no limit. Then its context ends
	// with the cause [core.ErrTimeout]; see [core.Options].
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink is where signals are raised; nil means that of the Retrier.
	Sink *core.Sink
}

// A Queue works on items, a bounded number at once, and retries items that fail. An item
// that backs off gives up its slot, so that others are worked on. First attempts are in
// the order in which the items came; a retry whose delay is over goes before them. Make a
// Queue with [NewQueue].
//
// An item is one operation, whatever its attempts, and counts once. While it backs off it
// is suspended (see [core.Operation.Suspend]), with a signal that says why; it costs a
// goroutine. MaxQueued and MaxSuspended bound the items that wait, except for items that
// work enqueues into its own queue. An item that is cancelled while it backs off ends as
// soon as a slot is free for it.
//
// All methods are safe for concurrent use. Work that waits in Do or Wait, with its own
// context, for another item of its queue is suspended as well; Flush, WaitIdle, Drain and
// Stop return [core.ErrWouldDeadlock] to it. Work that waits for its own queue by way of
// another coordinator keeps its slot and may wait for ever; Explain shows that. An idle
// queue owns no goroutine and needs no closing.
//
// The methods of [core.Control] are the coordinator's. An item that backs off has started:
// Stop waits for its retries, Close cancels them.
type Queue[T any] struct {
	core.Control
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Queue[int])(nil)
	_ core.Enqueuer[int] = (*Queue[int])(nil)
)

// NewQueue makes a queue that does work for each item by r, or says what is wrong with
// the options. It starts nothing.
func NewQueue[T any](r *Retrier, work core.Work[T], opts QueueOptions) (*Queue[T], error) {
	if r == nil || work == nil {
		return nil, errors.New("retry: NewQueue needs a Retrier and a function, not nil")
	}
	c, err := core.NewCoordinator(wrap(r, work, true), core.Options{
		Name:           cmp.Or(opts.Name, r.opts.Name),
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		MaxSuspended:   opts.MaxSuspended,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Timeout:        opts.Timeout,
		OnDone:         opts.OnDone,
		Sink:           cmp.Or(opts.Sink, r.opts.Sink),
	})
	if err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	return &Queue[T]{c.Control, c}, nil
}

// Enqueue accepts an item and returns the id of its operation. While the queue is full
// it waits for room, first come first served, until ctx ends, whose cause it then
// returns; for work of the queue there is always room. The context of the attempts has
// the values of ctx, but ends only with Cancel and Close. Enqueue returns
// [core.ErrClosed] after Complete, Drain, Stop and Close.
func (q *Queue[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return q.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait: it returns [core.ErrFull] when the
// queue is full.
func (q *Queue[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return q.c.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until it has succeeded or the Retrier has given up, and
// returns the error of [Retrier.Do]. When ctx ends first, the item is cancelled, also between two
// attempts, and the cause of ctx returned. The attempts have the deadline of ctx.
func (q *Queue[T]) Do(ctx context.Context, item T) error { return q.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns its error. When ctx ends first
// it only stops waiting. It returns [core.ErrUnknown] for an operation that the queue
// does not show any more.
func (q *Queue[T]) Wait(ctx context.Context, id core.OperationID) error { return q.c.Wait(ctx, id) }
