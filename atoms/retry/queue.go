package retry

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// QueueOptions configure a [Queue]. The zero value is the default.
type QueueOptions struct {
	// Name tells queues apart: it is the Source of the signals that the work, and the
	// Retrier for it, raise. "" means the name of the Retrier.
	Name string
	// MaxConcurrency is how many items are worked on at once, not counting those that
	// wait for their next attempt; 0 means runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait for their first attempt before Enqueue
	// waits and TryEnqueue refuses; 0 means 1024.
	MaxQueued int
	// MaxBackingOff is how many items may wait for their next attempt before no
	// more first attempts begin, so that the queue fills up while too much fails. 0
	// means as many as MaxQueued; negative none, so that an item that backs off
	// keeps another from its first attempt.
	MaxBackingOff int
	// MaxTracked is how many finished operations the queue still shows, besides
	// those that wait and run; 0 means 200, negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Sink is where signals are raised; nil means that of the Retrier.
	Sink *core.Sink
}

// A Queue works on items, a bounded number at once, and retries what fails. An item
// that waits for its next attempt does not keep others from being worked on. First
// attempts are in the order in which the items came; a retry that is due goes before
// them. Make one with [NewQueue].
//
// An item is one operation, whatever its attempts, and counts once. An operation that
// backs off counts as pending in Stats, and is shown as running by Lookup and
// Operations, with a signal that says why; it costs a goroutine. All that waits is
// bounded, by MaxQueued and MaxBackingOff.
//
// All methods are safe for concurrent use; those that would wait for the very work
// that calls them return [core.ErrWouldDeadlock]. That does not see a retry that waits
// for its place: work that waits, by way of another coordinator, for an item that backs
// off may have the place which that needs. An idle queue owns no goroutine and needs no
// closing.
type Queue[T any] struct {
	c     *core.Coordinator[T]
	seats *seats
}

var (
	_ core.Inspector     = (*Queue[int])(nil)
	_ core.Enqueuer[int] = (*Queue[int])(nil)
)

// NewQueue makes a queue that does work for each item by r, or says what is wrong with
// the options. It starts nothing.
func NewQueue[T any](r *Retrier, work core.Work[T], opts QueueOptions) (*Queue[T], error) {
	if r == nil {
		return nil, fmt.Errorf("retry: NewQueue needs a Retrier")
	}
	if work == nil {
		return nil, fmt.Errorf("retry: NewQueue needs a function")
	}
	if opts.Name == "" {
		opts.Name = r.name
	}
	if opts.Sink == nil {
		opts.Sink = r.sink
	}
	if opts.MaxConcurrency == 0 {
		opts.MaxConcurrency = runtime.GOMAXPROCS(0)
	}
	if opts.MaxQueued == 0 {
		opts.MaxQueued = 1024
	}
	if opts.MaxBackingOff == 0 {
		opts.MaxBackingOff = opts.MaxQueued
	}
	q := &Queue[T]{seats: &seats{
		most:  opts.MaxConcurrency,
		spare: max(0, opts.MaxBackingOff),
		limit: opts.MaxConcurrency,
	}}
	c, err := core.NewCoordinator(q.retrying(r, work), core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("retry: %w", err)
	}
	q.c = c
	q.seats.resize = func(limit int) { _ = c.SetMaxConcurrency(limit) } // at least MaxConcurrency
	return q, nil
}

// retrying is what the coordinator does for an item.
func (q *Queue[T]) retrying(r *Retrier, work core.Work[T]) core.Work[T] {
	return func(ctx context.Context, item T) error {
		mine := seat{of: q.seats}
		mine.sit(ctx)
		defer mine.depart()
		if !mine.sitting {
			return context.Cause(ctx)
		}
		return r.do(ctx, func(ctx context.Context) error { return work(ctx, item) }, &mine)
	}
}

// Enqueue accepts an item and returns the id of its operation. While the queue is full
// it waits for room, first come first served, until ctx ends, whose cause it then
// returns. The attempts are another matter: their context has the values of ctx, but
// ends only with Cancel and Close. Enqueue returns [core.ErrClosed] after Complete,
// Drain and Close.
func (q *Queue[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return q.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when the
// queue is full.
func (q *Queue[T]) TryEnqueue(item T) (core.OperationID, error) { return q.c.TryEnqueue(item) }

// Do enqueues an item, waits until it has succeeded or was given up on, and returns
// what [Retrier.Do] does. When ctx ends first, the item is cancelled, be it between two
// attempts, and the cause of ctx returned.
func (q *Queue[T]) Do(ctx context.Context, item T) error { return q.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns its error. When ctx ends first
// it only stops waiting. It returns [core.ErrUnknown] for an operation that the queue
// does not show any more.
func (q *Queue[T]) Wait(ctx context.Context, id core.OperationID) error { return q.c.Wait(ctx, id) }

// Cancel keeps an operation from starting, or from making another attempt, and cancels
// the context of the one it makes, with that cause; nil means [core.ErrCancelled]. It
// reports false if there was nothing to cancel.
func (q *Queue[T]) Cancel(id core.OperationID, cause error) bool { return q.c.Cancel(id, cause) }

// Lookup returns what the queue knows of an operation that waits, runs, or has finished
// not long ago.
func (q *Queue[T]) Lookup(id core.OperationID) (core.Snapshot, bool) { return q.c.Lookup(id) }

// Operations walks the operations that query selects, in the order in which they were
// accepted.
func (q *Queue[T]) Operations(query core.OperationQuery) iter.Seq[core.Snapshot] {
	return q.c.Operations(query)
}

// OnFinalized calls fn with the last snapshot of every operation that leaves the
// window, exactly once each, on Close too; see [core.Coordinator.OnFinalized].
func (q *Queue[T]) OnFinalized(fn func(core.Snapshot)) (cancel func()) { return q.c.OnFinalized(fn) }

// Explain says why an operation waits: before its first attempt, or, as a
// [core.ReasonBody], for the next one. The slots of a [core.ReasonLimit] are
// MaxConcurrency and one for each that backs off, up to MaxBackingOff; so its Holder,
// which has had one longest, may be backing off and not be what the operation waits for.
func (q *Queue[T]) Explain(id core.OperationID) (core.Explanation, bool) { return q.c.Explain(id) }

// Stats returns the queue's counters, read as one cut. Every accepted item is in
// exactly one of them: while it waits for its next attempt, in Pending.
func (q *Queue[T]) Stats() core.Stats {
	q.seats.mu.Lock()
	defer q.seats.mu.Unlock()
	s := q.c.Stats()
	s.Pending += s.Running - q.seats.taken
	s.Running = q.seats.taken
	s.Limit = q.seats.most
	return s
}

// Name is [QueueOptions.Name].
func (q *Queue[T]) Name() string { return q.c.Name() }

// Sink is where the signals of the queue's operations are raised.
func (q *Queue[T]) Sink() *core.Sink { return q.c.Sink() }

// Complete ends the intake. What was accepted is still worked on, and retried.
func (q *Queue[T]) Complete() { q.c.Complete() }

// Flush waits until everything accepted so far has succeeded or was given up on, while
// the intake stays open. When ctx ends first it returns its cause.
func (q *Queue[T]) Flush(ctx context.Context) error { return q.c.Flush(ctx) }

// Drain ends the intake and waits until everything accepted has succeeded or was given
// up on. When ctx ends first it returns its cause; the work goes on.
func (q *Queue[T]) Drain(ctx context.Context) error { return q.c.Drain(ctx) }

// Close ends the intake, cancels the work that runs and the retries that wait, with the
// cause [core.ErrClosed], accounts for the items that wait as cancelled, and waits for
// the work to return; called by the work itself it does not wait. It returns nil.
func (q *Queue[T]) Close() error { return q.c.Close() }
