package keyedpriorityfanout

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// The lanes of a coordinator that [New] made. Items that are enqueued without a lane are
// in lane Normal.
const (
	Priority = "priority"
	Normal   = "normal"
)

// New makes a coordinator that runs at most [core.Options.MaxConcurrency] items at once, and
// at most [core.Options.MaxPerKey] items of one key. With MaxPerKey 1, the default, the items
// of a key and a lane run in the order in which they were enqueued. The default of Name is
// "keyedpriorityfanout".
//
// When a slot is free, an item of the lane [Priority] takes it, if its key is not busy. Normal
// items do not starve: if an item could start and has waited for [core.Options.Ageing], every
// fourth start goes to the item that has waited longest. The default is 10 seconds. If Ageing
// is negative, priority items always go first.
//
// The parameter priority has the settings of that lane. Its Name may be empty. The zero Lane
// has only the limits of opts. CancelOn and DeferOn of the lane require opts.Sink. While a
// signal matches CancelOn, Enqueue and TryEnqueue of the lane return a [core.RefusedError],
// and items that already wait in the lane do not start: their status becomes refused. When
// Depth items wait in the lane, Enqueue waits for room, and TryEnqueue returns [core.ErrFull].
func New[T any, K ~string](key func(T) K, work core.Work[T], priority core.Lane, opts core.Options) (*core.Coordinator[T], error) {
	switch {
	case len(opts.Lanes) > 0:
		return nil, errors.New("keyedpriorityfanout: Options.Lanes is set, but the lanes are " + Priority + " and " + Normal)
	case priority.Name != "" && priority.Name != Priority:
		return nil, fmt.Errorf("keyedpriorityfanout: Lane.Name is %q, but must be %q or empty", priority.Name, Priority)
	case opts.Sink == nil && priority.CancelOn+priority.DeferOn != "":
		return nil, errors.New("keyedpriorityfanout: Options.Sink is nil, but CancelOn and DeferOn of the lane need a sink to look at")
	}
	priority.Name = Priority
	opts.Lanes = []core.Lane{priority, {Name: Normal}}
	opts.Name = cmp.Or(opts.Name, "keyedpriorityfanout")
	c, err := core.NewKeyedCoordinator(key, work, opts)
	if err != nil {
		return nil, fmt.Errorf("keyedpriorityfanout: %w", err)
	}
	return c, nil
}
