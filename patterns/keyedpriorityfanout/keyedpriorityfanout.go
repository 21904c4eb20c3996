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

// New makes a coordinator that runs at most [core.Options.MaxConcurrency] items at once,
// and of one key at most [core.Options.MaxPerKey]. With MaxPerKey 1, the default, the items
// of a key and a lane run in the order in which they were enqueued. The default of Name is
// "keyedpriorityfanout".
//
// When a slot is free, an item of lane [Priority] takes it, if there is one whose key is
// not busy. To keep normal items from starving, every fourth start is that of a normal item
// if one has waited for [core.Options.Ageing], by default 10 seconds; negative means that
// priority items always go first.
//
// Priority are the settings of that lane; its name may be left out. The zero Lane has no
// limits but those of the options. Priority.CancelOn and Priority.DeferOn look at
// [core.Options.Sink], which they require. While a signal matches CancelOn, Enqueue and
// TryEnqueue of the lane return a [core.RefusedError], and items that wait in it are
// refused. Depth is how many items may wait in the lane: then Enqueue waits for room, and
// TryEnqueue returns [core.ErrFull].
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
