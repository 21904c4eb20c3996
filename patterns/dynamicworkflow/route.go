package dynamicworkflow

import (
	"context"
	"hash/crc32"
	"slices"
	"sync/atomic"
)

// Priorities is how many priorities there may be: they are 1, the first choice, to 31.
const Priorities = 31

// Route says with which priority the work of an item starts; 0 means that no route is held.
// The context is the item's. Healthy reports whether a priority has not been said to be
// unhealthy. A Route is called by several items at once. Those of this package choose healthy
// priorities only, and 0 if there is none.
type Route func(ctx context.Context, entity string, healthy func(priority int) bool) int

// Best chooses the best healthy priority of 1 to that number.
func Best(priorities int) Route {
	return Weighted(append([]int{1}, make([]int, max(priorities, 1)-1)...)...)
}

// Weighted shares items out: with Weighted(90, 10), of each 100 items 90 go to priority 1 and
// 10 to priority 2. The share of an unhealthy priority goes to the next one. A priority whose
// weight is not positive gets only such items. Without a positive weight no route is held.
func Weighted(weights ...int) Route {
	var items atomic.Uint64
	return shared(weights, func(string) uint64 { return items.Add(1) * 2654435761 }) // a prime: each share is met once in each round, and mixed
}

// Sticky shares entities out, by a hash: an entity has the same priority always, in every
// process, while that is healthy. Otherwise it is as Weighted. It is for A/B tests.
func Sticky(weights ...int) Route {
	return shared(weights, func(entity string) uint64 { return uint64(crc32.ChecksumIEEE([]byte(entity))) })
}

// Regional chooses the first healthy priority in the list of the region, as in
// {"eu": {1, 3}, "us": {2, 3}, "": {3}}. The list of "" is for regions without one.
func Regional(region func(ctx context.Context, entity string) string, lists map[string][]int) Route {
	return func(ctx context.Context, entity string, healthy func(int) bool) int {
		list, ok := lists[region(ctx, entity)]
		if !ok {
			list = lists[""]
		}
		if i := slices.IndexFunc(list, healthy); i >= 0 {
			return list[i]
		}
		return 0
	}
}

// shared chooses the priority whose share that place is in, or the next that is healthy.
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
