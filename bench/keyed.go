package bench

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	keyCount = 10_000
	perKey   = 10 // number of items of a key in a block
	coldKeys = 1000
	hotItems = 10_000
	slow     = 100 * time.Microsecond
)

var keyNames = func() []string {
	names := make([]string, keyCount)
	for i := range names {
		names[i] = "key-" + strconv.Itoa(i)
	}
	return names
}()

// keyedRows measure operations that do nothing, with order per key.
func keyedRows() []Row {
	return []Row{
		{Name: "keys=10k/items=10/order=turns", MaxAllocs: -1, Sides: []Side{ // a key is idle when its next item comes
			keyedRun("ours", 0, inTurns),
			oursRun("ours-unkeyed", 2.0, 1, nothing),
		}},
		{Name: "keys=10k/items=10/order=blocks", MaxAllocs: -1, Sides: []Side{
			keyedRun("ours", 0, func(i int) int { return i / perKey % keyCount }),
			oursRun("ours-unkeyed", 2.0, 1, nothing),
		}},
		{Name: "cold-keys=1k/hot-key-items=10k", MaxAllocs: -1, Sides: []Side{
			coldRun("ours", 0, hotItems),
			coldRun("ours-cold-alone", 1.2, 0),
		}},
	}
}

// inTurns enqueues one item of every key before the second item of any key.
func inTurns(i int) int { return i % keyCount }

func keyed(work core.Work[int], queue int) *core.Coordinator[int] {
	return core.Must(core.NewKeyedCoordinator(func(i int) string { return keyNames[i] }, work, core.Options{
		MaxConcurrency: limit,
		MaxQueued:      queue,
		MaxTracked:     window,
	}))
}

func keyedRun(name string, goal float64, key func(i int) int) Side {
	return Side{name, goal, func() Body {
		c := keyed(nothing, queue)
		return Body{Run: func(n int) {
			ctx := context.Background()
			for i := range n {
				_, err := c.Enqueue(ctx, key(i))
				check(err)
			}
			check(c.Flush(ctx))
		}, Close: closing(c)}
	}}
}

// coldRun runs items of many keys and waits for them. Meanwhile one more key has a long
// queue of slow items.
func coldRun(name string, goal float64, hot int) Side {
	const hotKey = keyCount - 1
	return Side{name, goal, func() Body {
		var cold sync.WaitGroup
		c := keyed(func(ctx context.Context, key int) error {
			if key != hotKey {
				cold.Done()
				return nil
			}
			time.Sleep(slow)
			return nil
		}, queue+hot)
		for range hot {
			_, err := c.TryEnqueue(context.Background(), hotKey)
			check(err)
		}
		return Body{Run: func(n int) {
			ctx := context.Background()
			cold.Add(n)
			for i := range n {
				_, err := c.Enqueue(ctx, i%coldKeys)
				check(err)
			}
			cold.Wait()
		}, Close: closing(c)}
	}}
}
