package controlledfanout

import (
	"cmp"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// New makes a coordinator that runs at most [core.Options.MaxConcurrency] items at once,
// and of one key at most [core.Options.MaxPerKey]. With MaxPerKey 1, the default, the items
// of a key run in the order in which they were enqueued. The default of Name is
// "controlledfanout". Key is called once for each item, by Enqueue. A key without items
// costs nothing.
//
// The keys share one queue of [core.Options.MaxQueued] items. When one key fills it,
// Enqueue waits for room for items of all keys: make the queue as large as the largest
// backlog of one key that is normal, or refuse items of such keys with TryEnqueue.
func New[T any, K ~string](key func(T) K, work core.Work[T], opts core.Options) (*core.Coordinator[T], error) {
	opts.Name = cmp.Or(opts.Name, "controlledfanout")
	c, err := core.NewKeyedCoordinator(key, work, opts)
	if err != nil {
		return nil, fmt.Errorf("controlledfanout: %w", err)
	}
	return c, nil
}
