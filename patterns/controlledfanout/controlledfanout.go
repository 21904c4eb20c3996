package controlledfanout

import (
	"cmp"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// New makes a coordinator that runs at most [core.Options.MaxConcurrency] items at once, and
// at most [core.Options.MaxPerKey] items of one key. With MaxPerKey 1, the default, the items
// of a key run in the order in which they were enqueued. The default of Name is
// "controlledfanout". Enqueue calls key once for each item. A key without items costs nothing.
//
// The keys share one queue of [core.Options.MaxQueued] items. If the items of one key fill the
// queue, an item of another key is still accepted if it can start at once; else Enqueue waits.
// So make the queue larger than the number of items that one key normally has in it.
func New[T any, K ~string](key func(T) K, work core.Work[T], opts core.Options) (*core.Coordinator[T], error) {
	opts.Name = cmp.Or(opts.Name, "controlledfanout")
	c, err := core.NewKeyedCoordinator(key, work, opts)
	if err != nil {
		return nil, fmt.Errorf("controlledfanout: %w", err)
	}
	return c, nil
}
