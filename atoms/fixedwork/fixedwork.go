package fixedwork

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Pool]. The zero value is the default.
type Options struct {
	// Name is the Source of the signals of the work. "" means "fixedwork".
	Name string
	// MaxConcurrency is how many items run at once. 0 means runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait. If so many wait, Enqueue waits for room and
	// TryEnqueue refuses. 0 means 1024, negative means no queue.
	MaxQueued int
	// MaxTracked is how many finished operations the pool shows. The last 200 failed
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
	// Sink gets the signals of the pool and of the work. nil means a new sink.
	Sink *core.Sink
}

// A Pool runs a fixed number of items at once. Make one with [New]. It is a [core.Coordinator] and
// has all its methods. They are safe for concurrent use. Inside the work, methods that would wait
// for their caller return [core.ErrWouldDeadlock]. An idle pool has no goroutine and needs no
// closing.
type Pool[T any] struct{ *core.Coordinator[T] }

// New makes a pool that calls work for each item, or says what is wrong with the options. It
// starts no goroutine.
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
	return &Pool[T]{c}, nil
}
