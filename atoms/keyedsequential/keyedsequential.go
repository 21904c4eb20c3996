package keyedsequential

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Sequencer]. The zero value is the default.
type Options struct {
	// Name is the Source of the signals of the work. "" means "keyedsequential".
	Name string
	// MaxConcurrency is how many items of all keys run at once. 0 means
	// runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxPerKey is how many items of one key run at once. 0 means 1. With more than 1,
	// items of a key start in order, but may end in another order.
	MaxPerKey int
	// MaxQueued is how many items of all keys may wait. If so many wait, Enqueue waits for
	// room and TryEnqueue refuses. 0 means 1024, negative means no queue.
	MaxQueued int
	// MaxTracked is how many finished operations the sequencer shows. The last 200 failed
	// operations are shown in addition; for another number, use a coordinator of core with
	// [core.Options].MaxFailed. 0 means 200; negative means none, and no failed ones.
	MaxTracked int
	// MaxAge is how long finished operations are shown. 0 means 5 minutes, negative means
	// no limit.
	MaxAge time.Duration
	// Timeout is how long the work on an item may take, from its start. Then its context
	// ends with the cause [core.ErrTimeout]. 0 and negative mean no limit.
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink gets the signals of the sequencer and of the work. nil means a new sink.
	Sink *core.Sink
}

// A Sequencer runs items of one key one after the other, and items of different keys at the same
// time. Make one with [New]. All methods are safe for concurrent use. Inside the work, methods
// that would wait for their caller return [core.ErrWouldDeadlock]. An idle sequencer has no
// goroutine and needs no closing. The methods of [core.Control] are those of every coordinator.
// SetMaxConcurrency does not change MaxPerKey.
type Sequencer[T any] struct {
	core.Control
	c *core.Coordinator[T]
}

var (
	_ core.Inspector     = (*Sequencer[int])(nil)
	_ core.Enqueuer[int] = (*Sequencer[int])(nil)
)

// New makes a sequencer that calls work for each item, or says what is wrong with the options.
// key returns the key of an item. New starts no goroutine.
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

// Enqueue accepts an item and returns the id of its operation. While the queue is full, callers
// wait for room, first come, first served. If ctx ends first, Enqueue returns the cause of ctx.
// The work itself does not wait: there is always room for it (see [core.Coordinator.Enqueue]).
// The context of the item has the values of ctx, but does not end with ctx. After Complete,
// Drain, Stop and Close, Enqueue returns [core.ErrClosed].
func (s *Sequencer[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return s.c.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait. If the queue of all keys is full, it returns
// [core.ErrFull].
func (s *Sequencer[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return s.c.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until its operation ends, and returns the error of the work. If ctx
// ends first, Do cancels the item and returns the cause of ctx.
//
// If the work calls Do, it gives up its slot meanwhile, but not its key. With MaxPerKey 1, an
// item of the same key would wait for its caller, so Do returns [core.ErrWouldDeadlock]. See
// [core.Coordinator.Do].
func (s *Sequencer[T]) Do(ctx context.Context, item T) error { return s.c.Do(ctx, item) }

// Wait waits until an operation ends, and returns the error of its work. If ctx ends first, Wait
// returns, and the operation continues. If the sequencer no longer shows the operation, Wait
// returns [core.ErrUnknown].
func (s *Sequencer[T]) Wait(ctx context.Context, id core.OperationID) error { return s.c.Wait(ctx, id) }
