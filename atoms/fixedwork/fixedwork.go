package fixedwork

import (
	"cmp"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Pool runs a fixed number of items at once. Make one with [New]. It is a [core.Coordinator] and
// has all its methods. They are safe for concurrent use. Inside the work, methods that would wait
// for their caller return [core.ErrWouldDeadlock]. An idle pool has no goroutine and needs no
// closing, unless its options name signals of a shared sink; see [core.Coordinator].
type Pool[T any] struct{ *core.Coordinator[T] }

// New makes a pool that calls work for each item, or says what is wrong with the options. The
// default of Name is "fixedwork". New starts no goroutine.
func New[T any](work core.Work[T], opts core.Options) (*Pool[T], error) {
	opts.Name = cmp.Or(opts.Name, "fixedwork")
	c, err := core.NewCoordinator(work, opts)
	if err != nil {
		return nil, fmt.Errorf("fixedwork: %w", err)
	}
	return &Pool[T]{c}, nil
}
