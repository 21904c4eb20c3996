package keyedsequential

import (
	"context"
	"fmt"
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
	// waits and TryEnqueue refuses; 0 means 1024, negative no queue.
	MaxQueued int
	// MaxTracked is how many finished operations the sequencer still shows, besides
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
	// Sink is where the work raises its signals; nil means one of the sequencer's
	// own.
	Sink *core.Sink
}

// A Sequencer works on the items of each key one after the other, and on those of
// different keys side by side. Make one with [New]. All methods are safe for concurrent
// use; methods that would wait for the very work that calls them return
// [core.ErrWouldDeadlock]. An idle sequencer owns no goroutine and needs no closing. The
// methods of [core.Control] are the coordinator's: SetMaxConcurrency leaves MaxPerKey as it
// is, so the order within a key stays.
type Sequencer[T any] struct {
	core.Control
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Sequencer[int])(nil)
	_ core.Enqueuer[int] = (*Sequencer[int])(nil)
)

// New makes a sequencer that does work for each item, in order among items with the same
// key, or says what is wrong with the options. It starts nothing.
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
		Timeout:        opts.Timeout,
		OnDone:         opts.OnDone,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("keyedsequential: %w", err)
	}
	return &Sequencer[T]{c.Control, c}, nil
}

// Enqueue accepts an item and returns the id of its operation. While the queue is full
// it waits for room, first come first served, until ctx ends, whose cause it then
// returns; calls from the work itself are accepted without waiting, see
// [core.Coordinator.Enqueue]. The context of the work has the values of ctx, but does not end
// with it. Enqueue returns [core.ErrClosed] after Complete, Drain, Stop and Close.
func (s *Sequencer[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return s.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait: it returns [core.ErrFull] when the queue is
// full, with items of whatever keys.
func (s *Sequencer[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return s.c.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until it is worked on, after the items of its key before it,
// and returns the error of the work. When ctx ends first, the work is cancelled and the
// cause of ctx returned. Called from the work itself, Do gives up its slot meanwhile, but
// not its key: with MaxPerKey 1 an item of that key would wait for the caller, and Do
// returns [core.ErrWouldDeadlock]. See [core.Coordinator.Do].
func (s *Sequencer[T]) Do(ctx context.Context, item T) error { return s.c.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work. When ctx
// ends first it only stops waiting. It returns [core.ErrUnknown] for an operation that
// the sequencer does not show any more.
func (s *Sequencer[T]) Wait(ctx context.Context, id core.OperationID) error { return s.c.Wait(ctx, id) }
