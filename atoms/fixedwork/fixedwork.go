package fixedwork

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Pool]. The zero value is the default.
type Options struct {
	// Name tells pools apart: it is the Source of the signals that the work
	// raises. "" means "fixedwork".
	Name string
	// MaxConcurrency is how many items are worked on at once; 0 means
	// runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait for their turn before Enqueue waits
	// and TryEnqueue refuses; 0 means 1024.
	MaxQueued int
	// MaxTracked is how many finished operations the pool still shows, besides
	// those that wait and run; 0 means 200, negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Sink is where the work raises its signals; nil means one of the pool's
	// own.
	Sink *core.Sink
}

// A Pool works on items, a fixed number at once. Make one with [New]. All methods
// are safe for concurrent use; those that would wait for the very work that calls
// them return [core.ErrWouldDeadlock].
type Pool[T any] struct {
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Pool[int])(nil)
	_ core.Enqueuer[int] = (*Pool[int])(nil)
)

// New makes a pool that does work for each item, or says what is wrong with the
// options. It starts nothing.
func New[T any](work core.Work[T], opts Options) (*Pool[T], error) {
	if opts.Name == "" {
		opts.Name = "fixedwork"
	}
	c, err := core.NewCoordinator(work, core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("fixedwork: %w", err)
	}
	return &Pool[T]{c}, nil
}

// Enqueue accepts an item and returns the id of its operation. While the queue is
// full it waits for room, first come first served, until ctx ends, whose cause it
// then returns. What the work does with its own context is another matter: that
// has the values of ctx, but does not end with it. Enqueue returns
// [core.ErrClosed] after Complete, Drain and Close.
func (p *Pool[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return p.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when
// the queue is full.
func (p *Pool[T]) TryEnqueue(item T) (core.OperationID, error) { return p.c.TryEnqueue(item) }

// Do enqueues an item, waits until it is worked on, and returns the error of the
// work. When ctx ends first, the work is cancelled and the cause of ctx returned.
func (p *Pool[T]) Do(ctx context.Context, item T) error { return p.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work. When
// ctx ends first it only stops waiting. It returns [core.ErrUnknown] for an
// operation that the pool does not show any more.
func (p *Pool[T]) Wait(ctx context.Context, id core.OperationID) error { return p.c.Wait(ctx, id) }

// Cancel keeps an operation from starting, or cancels the context of its work with
// that cause; nil means [core.ErrCancelled]. It reports false if there was nothing
// to cancel.
func (p *Pool[T]) Cancel(id core.OperationID, cause error) bool { return p.c.Cancel(id, cause) }

// Lookup returns what the pool knows of an operation that waits, runs, or has
// finished not long ago.
func (p *Pool[T]) Lookup(id core.OperationID) (core.Snapshot, bool) { return p.c.Lookup(id) }

// Explain says why an operation waits: how many go before it, and what has the
// slots. It is false for an operation that the pool does not, or no longer, show.
func (p *Pool[T]) Explain(id core.OperationID) (core.Explanation, bool) { return p.c.Explain(id) }

// Operations walks the operations that q selects, in the order in which they were
// accepted.
func (p *Pool[T]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return p.c.Operations(q)
}

// OnFinalized calls fn with the last snapshot of every operation that leaves the
// window, exactly once each, on Close too; see [core.Coordinator.OnFinalized].
func (p *Pool[T]) OnFinalized(fn func(core.Snapshot)) (cancel func()) { return p.c.OnFinalized(fn) }

// Stats returns the pool's counters, read as one cut. Every accepted item is in
// exactly one of them.
func (p *Pool[T]) Stats() core.Stats { return p.c.Stats() }

// Name is [Options.Name].
func (p *Pool[T]) Name() string { return p.c.Name() }

// Sink is where the work raises its signals.
func (p *Pool[T]) Sink() *core.Sink { return p.c.Sink() }

// Complete ends the intake. What was accepted is still worked on.
func (p *Pool[T]) Complete() { p.c.Complete() }

// Flush waits until everything accepted so far is finished, while the intake stays
// open. When ctx ends first it returns its cause.
func (p *Pool[T]) Flush(ctx context.Context) error { return p.c.Flush(ctx) }

// Drain ends the intake and waits until everything accepted is finished. When ctx
// ends first it returns its cause; the work goes on.
func (p *Pool[T]) Drain(ctx context.Context) error { return p.c.Drain(ctx) }

// Close ends the intake, cancels the work that runs, with the cause
// [core.ErrClosed], accounts for the items that wait as cancelled, and waits for
// the work to return; called by the work itself it does not wait. It returns nil.
func (p *Pool[T]) Close() error { return p.c.Close() }
