package lru

import "fmt"

// What a cache raises on [Options.Sink]. The key of a signal is that of the entry, in
// the form of fmt.Sprint.
const (
	SignalHit        = "cache.hit"        // a value was found; sampled
	SignalHot        = "cache.hot"        // the same, and the entry is hot; sampled
	SignalMiss       = "cache.miss"       // no value was found; sampled
	SignalEvict      = "cache.evict"      // an entry made room for another
	SignalExpire     = "cache.expire"     // an entry was removed because its time was over
	SignalInvalidate = "cache.invalidate" // an entry was removed by Invalidate
	SignalClear      = "cache.clear"      // all entries were removed by Clear; no key
)

// tally returns the tally for the key of that hash.
func (c *LRU[K, V]) tally(hash uint64) *tally {
	return &c.tallies[hash>>16%uint64(len(c.tallies))]
}

// hit counts that a value was found.
func (c *LRU[K, V]) hit(hash uint64, key K, hot bool) {
	c.tally(hash).hits.Add(1)
	switch {
	case c.opts.Sink == nil:
	case hot:
		c.sample(SignalHot, key)
	default:
		c.sample(SignalHit, key)
	}
}

// miss counts that none was.
func (c *LRU[K, V]) miss(hash uint64, key K) {
	c.tally(hash).misses.Add(1)
	if c.opts.Sink != nil {
		c.sample(SignalMiss, key)
	}
}

// sample raises one of so many signals.
func (c *LRU[K, V]) sample(name string, key K) {
	if c.sampled.Add(1)%uint64(c.opts.SampleEvery) == 0 {
		c.raise(name, key)
	}
}

func (c *LRU[K, V]) raise(name string, key K) {
	text, ok := any(key).(string)
	if !ok {
		text = fmt.Sprint(key)
	}
	c.opts.Sink.RaiseKey(name, text)
}

// tell raises the signals of what was removed and hands it over. No lock is held.
func (c *LRU[K, V]) tell(removed removals[K, V]) {
	for _, r := range removed {
		if c.opts.Sink != nil {
			switch r.reason {
			case ReasonEvicted:
				c.raise(SignalEvict, r.key)
			case ReasonExpired:
				c.raise(SignalExpire, r.key)
			case ReasonInvalidated:
				c.raise(SignalInvalidate, r.key)
			}
		}
		c.handOver(r)
	}
}

// handOver calls OnRemoved.
func (c *LRU[K, V]) handOver(r removal[K, V]) {
	if c.opts.OnRemoved == nil {
		return
	}
	defer func() {
		if recover() != nil {
			c.panics.Add(1)
		}
	}()
	c.opts.OnRemoved(r.key, r.value, r.reason)
}
