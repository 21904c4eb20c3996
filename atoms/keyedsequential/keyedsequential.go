package keyedsequential

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Sequencer]. The zero value is the default.
type Options struct {
	// Name tells sequencers apart: it is the Source of the signals that the work
	// raises. "" means "keyedsequential".
	Name string
	// MaxConcurrency is how many items are worked on at once, of all keys; 0 means
	// runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxPerKey is how many items of one key are worked on at once; 0 means 1. With
	// more, items of a key still start in order, but need not end in it.
	MaxPerKey int
	// MaxQueued is how many items, of all keys, may wait for their turn before Enqueue
	// waits and TryEnqueue refuses; 0 means 1024.
	MaxQueued int
	// MaxTracked is how many finished operations the sequencer still shows, besides
	// those that wait and run; 0 means 200, negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Sink is where the work raises its signals; nil means one of the sequencer's
	// own.
	Sink *core.Sink
}

// A Sequencer works on the items of each key one after the other, and on those of
// different keys side by side. Make one with [New]. All methods are safe for concurrent
// use; those that would wait for the very work that calls them return
// [core.ErrWouldDeadlock]. An idle one owns no goroutine and needs no closing.
type Sequencer[T any] struct {
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Sequencer[int])(nil)
	_ core.Enqueuer[int] = (*Sequencer[int])(nil)
)

// New makes a sequencer that does work for each item, in order among those of which key
// returns the same, or says what is wrong with the options. It starts nothing.
func New[T any, K ~string](key func(T) K, work core.Work[T], opts Options) (*Sequencer[T], error) {
	if opts.Name == "" {
		opts.Name = "keyedsequential"
	}
	c, err := core.NewKeyedCoordinator(key, work, core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxPerKey:      opts.MaxPerKey,
		MaxQueued:      opts.MaxQueued,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("keyedsequential: %w", err)
	}
	return &Sequencer[T]{c}, nil
}

// Enqueue accepts an item and returns the id of its operation. While the queue is full
// it waits for room, first come first served, until ctx ends, whose cause it then
// returns; of an item that was not accepted nothing remains. What the work does with
// its own context is another matter: that has the values of ctx, but does not end with
// it. Enqueue returns [core.ErrClosed] after Complete, Drain and Close.
func (s *Sequencer[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return s.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when the
// queue is full, whoever's items it is full of.
func (s *Sequencer[T]) TryEnqueue(item T) (core.OperationID, error) { return s.c.TryEnqueue(item) }

// Do enqueues an item, waits until it is worked on, after what its key has before it,
// and returns the error of the work. When ctx ends first, the work is cancelled and the
// cause of ctx returned.
func (s *Sequencer[T]) Do(ctx context.Context, item T) error { return s.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work. When ctx
// ends first it only stops waiting. It returns [core.ErrUnknown] for an operation that
// the sequencer does not show any more.
func (s *Sequencer[T]) Wait(ctx context.Context, id core.OperationID) error { return s.c.Wait(ctx, id) }

// Cancel keeps an operation from starting, or cancels the context of its work with that
// cause; nil means [core.ErrCancelled]. It reports false if there was nothing to cancel.
func (s *Sequencer[T]) Cancel(id core.OperationID, cause error) bool { return s.c.Cancel(id, cause) }

// Lookup returns what the sequencer knows of an operation that waits, runs, or has
// finished not long ago. Its Key is the item's.
func (s *Sequencer[T]) Lookup(id core.OperationID) (core.Snapshot, bool) { return s.c.Lookup(id) }

// Operations walks the operations that q selects, for example those of a key, in the
// order in which they were accepted.
func (s *Sequencer[T]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return s.c.Operations(q)
}

// Explain says why an operation waits: for its key, and for which operation that has
// it; for its turn; or for a place among those that run. It is false for an operation
// that the sequencer does not, or no longer, show.
func (s *Sequencer[T]) Explain(id core.OperationID) (core.Explanation, bool) {
	return s.c.Explain(id)
}

// OnFinalized calls fn with the last snapshot of every operation that leaves the
// window, exactly once each, on Close too; see [core.Coordinator.OnFinalized].
func (s *Sequencer[T]) OnFinalized(fn func(core.Snapshot)) (cancel func()) {
	return s.c.OnFinalized(fn)
}

// Stats returns the counters, read as one cut. Every accepted item is in exactly one of
// them.
func (s *Sequencer[T]) Stats() core.Stats { return s.c.Stats() }

// Name is [Options.Name].
func (s *Sequencer[T]) Name() string { return s.c.Name() }

// Sink is where the work raises its signals.
func (s *Sequencer[T]) Sink() *core.Sink { return s.c.Sink() }

// Complete ends the intake. What was accepted is still worked on.
func (s *Sequencer[T]) Complete() { s.c.Complete() }

// Flush waits until everything accepted so far is finished, while the intake stays open.
// When ctx ends first it returns its cause.
func (s *Sequencer[T]) Flush(ctx context.Context) error { return s.c.Flush(ctx) }

// Drain ends the intake and waits until everything accepted is finished. When ctx ends
// first it returns its cause; the work goes on.
func (s *Sequencer[T]) Drain(ctx context.Context) error { return s.c.Drain(ctx) }

// Close ends the intake, cancels the work that runs, with the cause [core.ErrClosed],
// accounts for the items that wait as cancelled, and waits for the work to return;
// called by the work itself it does not wait. It returns nil.
func (s *Sequencer[T]) Close() error { return s.c.Close() }
