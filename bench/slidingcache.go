package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/jellydator/ttlcache/v3"
	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
)

// loading has the methods that all caches with a loader have. A missing entry is loaded
// once, even if several callers request it.
type loading struct {
	get   func(ctx context.Context, key string) (int, error)
	peek  func(key string) (int, bool) // loads nothing
	set   func(key string, value int)
	close func() // may be nil
}

// done releases the resources of the cache.
func (c loading) done() {
	if c.close != nil {
		c.close()
	}
}

var loadingMakers = []struct {
	name string
	new  func(capacity int) loading
}{
	{"ours", oursLoading},
	{"otter", otterLoading},
	{"singleflight+expirable", singleflightLoading},
	{"ttlcache", ttlcacheLoading},
}

// loadNothing is a load that costs nothing, so that only the overhead is measured.
func loadNothing(_ context.Context, key string) (int, error) { return len(key), nil }

// Our cache runs a load as an operation, which can be seen and cancelled. A caller that
// waits for it may leave.
func oursLoading(capacity int) loading {
	c := core.Must(slidingcache.New(loadNothing, slidingcache.Options[string]{Capacity: capacity, Sliding: cacheTTL}))
	return loading{c.Get, c.GetIfPresent, c.Set, func() { c.Close() }}
}

// otter runs a load on the goroutine of the first caller.
func otterLoading(capacity int) loading {
	c := otter.Must(&otter.Options[string, int]{
		MaximumSize:      capacity,
		ExpiryCalculator: otter.ExpiryAccessing[string, int](cacheTTL),
	})
	loader := otter.LoaderFunc[string, int](loadNothing)
	return loading{
		get:   func(ctx context.Context, key string) (int, error) { return c.Get(ctx, key, loader) },
		peek:  c.GetIfPresent,
		set:   func(key string, value int) { c.Set(key, value) },
		close: func() { c.StopAllGoroutines() },
	}
}

// singleflightLoading is the code that a program writes with singleflight and expirable.
func singleflightLoading(capacity int) loading {
	c := expirable.NewLRU[string, int](capacity, nil, cacheTTL)
	var group singleflight.Group
	get := func(ctx context.Context, key string) (int, error) {
		if value, ok := c.Get(key); ok {
			return value, nil
		}
		value, err, _ := group.Do(key, func() (any, error) {
			value, err := loadNothing(ctx, key)
			if err == nil {
				c.Add(key, value)
			}
			return value, err
		})
		if err != nil {
			return 0, err
		}
		return value.(int), nil
	}
	return loading{get: get, peek: c.Get, set: func(key string, value int) { c.Add(key, value) }}
}

// A loader of ttlcache has neither a context nor an error.
func ttlcacheLoading(capacity int) loading {
	loader := ttlcache.LoaderFunc[string, int](func(c *ttlcache.Cache[string, int], key string) *ttlcache.Item[string, int] {
		value, _ := loadNothing(context.Background(), key)
		return c.Set(key, value, ttlcache.DefaultTTL)
	})
	c := ttlcache.New(
		ttlcache.WithCapacity[string, int](uint64(capacity)),
		ttlcache.WithTTL[string, int](cacheTTL),
		ttlcache.WithLoader(ttlcache.NewSuppressedLoader(loader, new(singleflight.Group))),
	)
	return loading{
		get: func(_ context.Context, key string) (int, error) { return c.Get(key).Value(), nil },
		peek: func(key string) (int, bool) {
			item := c.Get(key, ttlcache.WithLoader[string, int](nil))
			if item == nil {
				return 0, false
			}
			return item.Value(), true
		},
		set: func(key string, value int) { c.Set(key, value, ttlcache.DefaultTTL) },
	}
}

// slidingcacheRows measure requests by Zipf's law to caches that can load.
func slidingcacheRows() []Row {
	many := sync.OnceValue(zipfRequests)
	few := sync.OnceValue(residentRequests)
	ctx := context.Background()
	ops := []struct {
		name     string
		goal     float64 // beside otter
		allocs   float64
		requests func() []string
		do       func(c loading, key string, i int)
	}{
		{"op=hit", 0.9, 0, few, func(c loading, key string, _ int) { c.get(ctx, key) }},
		{"op=peek-set-missing", 0.9, 0.3, many, func(c loading, key string, i int) {
			if _, ok := c.peek(key); !ok {
				c.set(key, i)
			}
		}},
		{"op=peek-80-set-20", 0.9, 0.3, many, func(c loading, key string, i int) {
			if i%5 == 0 {
				c.set(key, i)
			} else {
				c.peek(key)
			}
		}},
		{"op=load-missing", 2.2, -1, many, func(c loading, key string, _ int) { c.get(ctx, key) }},
	}
	var rows []Row
	for _, op := range ops {
		for _, goroutines := range []int{1, 8} {
			row := Row{Name: fmt.Sprintf("%s/goroutines=%d", op.name, goroutines), MaxAllocs: op.allocs}
			for _, maker := range loadingMakers {
				goal := 0.0
				if maker.name == "otter" {
					goal = op.goal
				}
				row.Sides = append(row.Sides, loadingSide(maker.name, goal, maker.new, goroutines, op.requests, op.do))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func loadingSide(
	name string, goal float64, maker func(capacity int) loading, goroutines int,
	requests func() []string, do func(loading, string, int),
) Side {
	return Side{name, goal, func() Body {
		c, list := maker(cacheSize), requests()
		var from atomic.Int64
		run := func(n int) {
			at := int(from.Add(int64(n))) - n
			for i := at; i < at+n; i++ {
				do(c, list[i%len(list)], i)
			}
		}
		for _, key := range list[:4*cacheSize] { // fill it
			if _, ok := c.peek(key); !ok {
				c.set(key, 0)
			}
		}
		return Body{Run: func(n int) { spread(goroutines, n, run) }, Close: c.done}
	}}
}

// residentRequests have so few keys that the cache has room for all.
func residentRequests() []string {
	n := cacheSize / 2
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	next := zipf(n, 0.99, 1)
	list := append(make([]string, 0, cacheRequests()/2), keys...) // each key once, then by Zipf's law
	for len(list) < cap(list) {
		list = append(list, keys[next()])
	}
	return list
}
