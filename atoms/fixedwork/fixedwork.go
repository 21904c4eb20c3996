package fixedwork

import (
	"context"
	"fmt"
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
	// and TryEnqueue refuses; 0 means 1024, negative no queue.
	MaxQueued int
	// MaxTracked is how many finished operations the pool still shows, besides
	// operations that wait and run, and the last 200 that failed; 0 means 200, negative
	// none, failed ones included.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Timeout is how long the work on an item may take, from its start; 0 or negative
	// means no limit. Then its context ends with the cause [core.ErrTimeout]; see
	// [core.Options].
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink is where the work raises its signals; nil means one of the pool's
	// own.
	Sink *core.Sink
}

// A Pool works on items, a fixed number at once. Make one with [New]. All methods
// are safe for concurrent use; methods that would wait for the very work that calls them
// return [core.ErrWouldDeadlock]. The methods of [core.Control] are the coordinator's.
type Pool[T any] struct {
	core.Control
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
		Timeout:        opts.Timeout,
		OnDone:         opts.OnDone,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("fixedwork: %w", err)
	}
	return &Pool[T]{c.Control, c}, nil
}

// Enqueue accepts an item and returns the id of its operation. While the queue is
// full it waits for room, first come first served, until ctx ends, whose cause it
// then returns; calls from the work itself are accepted without waiting, see
// [core.Coordinator.Enqueue]. The context of the work has the values of ctx, but does not
// end with it. Enqueue returns [core.ErrClosed] after Complete, Drain, Stop and Close.
func (p *Pool[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return p.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait: it returns [core.ErrFull] when the queue is
// full.
func (p *Pool[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return p.c.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until it is worked on, and returns the error of the
// work. When ctx ends first, the work is cancelled and the cause of ctx returned. Called
// from the work itself, Do gives up its slot meanwhile; see [core.Coordinator.Do].
func (p *Pool[T]) Do(ctx context.Context, item T) error { return p.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work. When
// ctx ends first it only stops waiting. It returns [core.ErrUnknown] for an
// operation that the pool does not show any more.
func (p *Pool[T]) Wait(ctx context.Context, id core.OperationID) error { return p.c.Wait(ctx, id) }
