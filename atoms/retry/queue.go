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
	// Name is the Source of all signals of the operations, those of the Retrier included.
	// "" means the name of the Retrier.
	Name string
	// MaxConcurrency is how many items run at once; items that back off do not count. 0
	// means runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait for their first attempt. If so many wait,
	// Enqueue waits and TryEnqueue refuses. 0 means 1024, negative means no queue: see
	// [core.Options].
	MaxQueued int
	// MaxSuspended is how many items may give up their slots to back off. Each further
	// item that backs off keeps its slot, so the queue fills up while too many items
	// fail. 0 means 1024, negative means none.
	MaxSuspended int
	// MaxTracked is how many finished operations the queue lists. The last 200 failed
	// operations are listed in addition; for another number, use [Wrap] and a coordinator
	// of core with [core.Options].MaxFailed. 0 means 200; negative means none, and no failed
	// ones.
	MaxTracked int
	// MaxAge is how long finished operations are listed. 0 means 5 minutes, negative
	// means no limit.
	MaxAge time.Duration
	// Timeout is how long an item may take, from its start, with all attempts and the
	// delays between them. Then its context ends with the cause [core.ErrTimeout]. 0 and
	// negative mean no limit.
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink gets the signals. nil means the sink of the Retrier.
	Sink *core.Sink
}

// A Queue runs a limited number of items at once, and retries items that fail. An item that
// backs off (waits for its next attempt) gives up its slot, so other items run. First
// attempts start in the order of Enqueue. When the delay of a retry is over, the retry goes
// before them. Make a Queue with [NewQueue].
//
// An item is one operation and counts once, however many attempts it has. While it backs
// off, it is suspended (see [core.Operation.Suspend]), and it costs a goroutine. If it is
// cancelled meanwhile, it ends as soon as it gets a slot. MaxQueued and MaxSuspended limit
// the items that wait; there is no limit for items that work enqueues into its own queue.
//
// All methods are safe for concurrent use. If work waits in Do or Wait for another item of
// its queue, with its own context, it is suspended as well. If it calls Flush, WaitIdle,
// Drain or Stop, it gets [core.ErrWouldDeadlock]. If it waits for its own queue through
// another coordinator, it keeps its slot and may wait for ever; Explain shows that. An idle
// queue has no goroutine and needs no closing.
//
// The methods of [core.Control] are those of every coordinator. An item that backs off has
// started: Stop waits for its retries, and Close cancels them.
type Queue[T any] struct {
	core.Control
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Queue[int])(nil)
	_ core.Enqueuer[int] = (*Queue[int])(nil)
)

// NewQueue makes a queue that calls work for each item and retries by r, or says what is
// wrong with the options. It starts no goroutine.
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

// Enqueue accepts an item and returns the id of its operation. While the queue is full,
// callers wait for room, first come, first served. If ctx ends first, Enqueue returns the
// cause of ctx. Work of the queue does not wait: there is always room for it. The context of
// the attempts has the values of ctx, but does not end with ctx: it ends with Cancel, Close
// and Timeout. After Complete, Drain, Stop and Close, Enqueue returns [core.ErrClosed].
func (q *Queue[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return q.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait. If the queue is full, it returns [core.ErrFull].
func (q *Queue[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return q.c.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until its operation ends, and returns the error of [Retrier.Do].
// If ctx ends first, Do cancels the item, also between two attempts, and returns the cause of
// ctx. The attempts have the deadline of ctx.
func (q *Queue[T]) Do(ctx context.Context, item T) error { return q.c.Do(ctx, item) }

// Wait waits until an operation ends and returns its error. If ctx ends first, Wait returns,
// and the operation continues. If the queue no longer lists the operation, Wait returns
// [core.ErrUnknown].
func (q *Queue[T]) Wait(ctx context.Context, id core.OperationID) error { return q.c.Wait(ctx, id) }
