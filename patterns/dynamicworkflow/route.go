package dynamicworkflow

import (
	"context"
	"sync/atomic"
)

// priorities is the largest priority.
const priorities = 31

// Route returns the priority with which the work of an item starts, from 1, the first choice, to 31; 0 means that no route is
// held. The context is the context of the item. Healthy reports whether an item may be routed
// to a priority: for an unhealthy one, it returns true once every 5 s. A Route must be safe for
// concurrent use. The Routes of this package choose only priorities for which healthy returns
// true. If there is none, they return 0.
type Route func(ctx context.Context, entity string, healthy func(priority int) bool) int

// Best chooses the first healthy priority of 1, 2 and so on, up to the given number.
func Best(priorities int) Route {
	return Weighted(append([]int{1}, make([]int, max(priorities, 1)-1)...)...)
}

// Weighted divides items by weights. With Weighted(90, 10), 90 of each 100 items go to priority
// 1, and 10 to priority 2. If a priority is unhealthy, the next priority gets its items. A
// priority whose weight is not positive gets only the items of unhealthy ones. If no weight is
// positive, no route is held.
func Weighted(weights ...int) Route {
	var items atomic.Uint64
	return shared(weights, func(string) uint64 { return items.Add(1) * 2654435761 }) // a prime, so that each round visits each share once, in mixed order
}

// shared chooses the priority in whose share the place is. If that priority is unhealthy,
// it chooses the next healthy one.
func shared(weights []int, place func(entity string) uint64) Route {
	sum := 0
	for _, w := range weights {
		sum += max(w, 0)
	}
	return func(_ context.Context, entity string, healthy func(int) bool) int {
		at := int(place(entity) % uint64(max(sum, 1)))
		for i := range 2 * len(weights) {
			i %= len(weights)
			if at -= max(weights[i], 0); at < 0 && healthy(i+1) {
				return i + 1
			}
		}
		return 0
	}
}
