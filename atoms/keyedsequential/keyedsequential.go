package keyedsequential

import (
	"cmp"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Sequencer runs items of one key one after the other, and items of different keys at the same
// time. Make one with [New]. It is a [core.Coordinator] and has all its methods. They are safe for
// concurrent use. Inside the work, methods that would wait for their caller return
// [core.ErrWouldDeadlock]; Do also returns it if the item has the key of the work's own item and
// MaxPerKey is 1. SetMaxConcurrency does not change MaxPerKey. An idle sequencer has no goroutine
// and needs no closing, unless its options name signals of a shared sink; see [core.Coordinator].
type Sequencer[T any] struct{ *core.Coordinator[T] }

// New makes a sequencer that calls work for each item, or says what is wrong with the options.
// key returns the key of an item. With [core.Options.MaxPerKey] above 1, items of a key start in
// order, but may end in another order. The default of Name is "keyedsequential". New starts no
// goroutine.
func New[T any, K ~string](key func(T) K, work core.Work[T], opts core.Options) (*Sequencer[T], error) {
	opts.Name = cmp.Or(opts.Name, "keyedsequential")
	c, err := core.NewKeyedCoordinator(key, work, opts)
	if err != nil {
		return nil, fmt.Errorf("keyedsequential: %w", err)
	}
	return &Sequencer[T]{c}, nil
}
