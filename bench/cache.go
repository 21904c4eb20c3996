package bench

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/jellydator/ttlcache/v3"
	"github.com/maypok86/otter/v2"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Settings for every cache. No entry expires during the measurement, but every cache reads
// the clock and does the work of expiry.
const cacheTTL = 5 * time.Minute

var cacheSize = 1 << 15 // entries; tests make it smaller

// cacheKeys is the number of different keys in the requests, which follow Zipf's law.
func cacheKeys() int { return 16 * cacheSize }

// cacheRequests is the number of requests in the repeated list, a power of two.
func cacheRequests() int { return 64 * cacheSize }

// cache has the methods that all libraries have.
type cache struct {
	get   func(key string) (int, bool)
	set   func(key string, value int)
	close func() // may be nil
}

// done releases the resources of the cache.
func (c cache) done() {
	if c.close != nil {
		c.close()
	}
}

// cacheMaker makes a cache of a library.
type cacheMaker struct {
	name string
	new  func(capacity int) cache
}

var cacheMakers = []cacheMaker{
	{"ours", oursCache},
	{"otter", otterCache},
	{"ristretto", ristrettoCache},
	{"expirable", expirableCache},
	{"ttlcache", ttlcacheCache},
}

func oursCache(capacity int) cache {
	c := core.Must(lru.New(lru.Options[string, int]{Capacity: capacity, TTL: cacheTTL}))
	return cache{get: c.Get, set: c.Set}
}

// A read of otter extends the life of the entry, but only by more than a second.
func otterCache(capacity int) cache {
	c := otter.Must(&otter.Options[string, int]{
		MaximumSize:      capacity,
		ExpiryCalculator: otter.ExpiryAccessing[string, int](cacheTTL),
	})
	return cache{
		get:   c.GetIfPresent,
		set:   func(key string, value int) { c.Set(key, value) },
		close: func() { c.StopAllGoroutines() },
	}
}

// A read of ristretto does not extend the life of the entry.
func ristrettoCache(capacity int) cache {
	c, err := ristretto.NewCache(&ristretto.Config[string, int]{
		NumCounters:        int64(10 * capacity),
		MaxCost:            int64(capacity),
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	check(err)
	return cache{
		get:   c.Get,
		set:   func(key string, value int) { c.SetWithTTL(key, value, 1, cacheTTL) },
		close: c.Close,
	}
}

// A read of expirable does not extend the life of the entry. Its goroutine cannot be
// stopped.
func expirableCache(capacity int) cache {
	c := expirable.NewLRU[string, int](capacity, nil, cacheTTL)
	return cache{get: c.Get, set: func(key string, value int) { c.Add(key, value) }}
}

func ttlcacheCache(capacity int) cache {
	c := ttlcache.New(ttlcache.WithCapacity[string, int](uint64(capacity)), ttlcache.WithTTL[string, int](cacheTTL))
	return cache{
		get: func(key string) (int, bool) {
			if item := c.Get(key); item != nil {
				return item.Value(), true
			}
			return 0, false
		},
		set: func(key string, value int) { c.Set(key, value, ttlcache.DefaultTTL) },
	}
}

// cacheRows measure requests by Zipf's law to a full cache.
func cacheRows() []Row {
	goals := map[string]float64{"otter": 0.9}
	requests := sync.OnceValue(zipfRequests)
	ops := []struct {
		name string
		do   func(c cache, key string, i int)
	}{
		{"op=get-set-missing", func(c cache, key string, i int) {
			if _, ok := c.get(key); !ok {
				c.set(key, i)
			}
		}},
		{"op=get-80-set-20", func(c cache, key string, i int) {
			if i%5 == 0 {
				c.set(key, i)
			} else {
				c.get(key)
			}
		}},
	}
	var rows []Row
	for _, op := range ops {
		for _, goroutines := range []int{1, 8} {
			row := Row{Name: fmt.Sprintf("%s/goroutines=%d", op.name, goroutines), MaxAllocs: 0.3}
			for _, maker := range cacheMakers {
				row.Sides = append(row.Sides, cacheSide(maker, goals[maker.name], goroutines, requests, op.do))
			}
			rows = append(rows, row)
		}
	}
	hit := Row{Name: "op=hit/goroutines=1"}
	for _, maker := range cacheMakers {
		hit.Sides = append(hit.Sides, Side{maker.name, 0, func() Body {
			c := maker.new(cacheSize)
			c.set("key", 1)
			return Body{Run: func(n int) {
				for range n {
					c.get("key")
				}
			}, Close: c.done}
		}})
	}
	return append(rows, hit)
}

func cacheSide(maker cacheMaker, goal float64, goroutines int, requests func() []string, do func(cache, string, int)) Side {
	return Side{maker.name, goal, func() Body {
		c, list := maker.new(cacheSize), requests()
		var from atomic.Int64
		run := func(n int) {
			at := int(from.Add(int64(n))) - n
			for i := at; i < at+n; i++ {
				do(c, list[i&(len(list)-1)], i)
			}
		}
		run(8 * cacheSize)
		return Body{Run: func(n int) { spread(goroutines, n, run) }, Close: c.done}
	}}
}

// zipfRequests returns the keys of cacheRequests requests.
func zipfRequests() []string {
	keys := make([]string, cacheKeys())
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	next := zipf(len(keys), 0.99, 1)
	list := make([]string, cacheRequests())
	for i := range list {
		list[i] = keys[next()]
	}
	return list
}
