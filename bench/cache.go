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

// What everybody is given. Nothing expires while it is measured; but everybody has
// to look at the clock and to keep account, as for a cache from which things do.
const (
	cacheSize   = 1 << 15
	cacheKeys   = 16 * cacheSize // keys that are asked for, by Zipf's law
	cacheTTL    = 5 * time.Minute
	cacheRounds = 1 << 21 // requests until the same ones come again
)

// cache is what the libraries have in common.
type cache struct {
	get   func(key string) (int, bool)
	set   func(key string, value int)
	close func() // may be nil
}

// done releases what the cache holds.
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

// otter's reads, too, prolong the life of what they find, but only if by more than
// a second.
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

// ristretto's reads prolong nothing.
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

// expirable's reads prolong nothing; its goroutine cannot be ended.
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

// cacheRows: requests by Zipf's law to a full cache.
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
			return Body{func(n int) {
				for range n {
					c.get("key")
				}
			}, c.done}
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
				do(c, list[i%cacheRounds], i)
			}
		}
		run(8 * cacheSize)
		return Body{func(n int) { spread(goroutines, n, run) }, c.done}
	}}
}

// zipfRequests returns the keys of so many requests.
func zipfRequests() []string {
	keys := make([]string, cacheKeys)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	next := zipf(cacheKeys, 0.99, 1)
	list := make([]string, cacheRounds)
	for i := range list {
		list[i] = keys[next()]
	}
	return list
}
