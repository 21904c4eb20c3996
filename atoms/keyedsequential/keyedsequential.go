package keyedsequential

import (
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
// time. Make one with [New]. It is a [core.Coordinator] and has all its methods. They are safe for
// concurrent use. Inside the work, methods that would wait for their caller return
// [core.ErrWouldDeadlock]; so does Do with an item of the key that the work has, if MaxPerKey is 1.
// SetMaxConcurrency does not change MaxPerKey. An idle sequencer has no goroutine and needs no
// closing.
type Sequencer[T any] struct{ *core.Coordinator[T] }

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
	return &Sequencer[T]{c}, nil
}
