package lru

import "fmt"

// Signals that a cache raises on [Options.Sink]. The key of a signal is the key of the
// entry, in the form of fmt.Sprint.
const (
	SignalHit         = "cache.hit"         // a value was found; sampled
	SignalHot         = "cache.hot"         // a value was found, and its entry is hot; sampled
	SignalMiss        = "cache.miss"        // no value was found; sampled
	SignalEvicted     = "cache.evicted"     // an entry made room for another
	SignalExpired     = "cache.expired"     // an expired entry was removed
	SignalInvalidated = "cache.invalidated" // an entry was removed by Remove
	SignalCleared     = "cache.cleared"     // all entries were removed by Clear; has no key
)

// tally returns the tally of a key by its hash.
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

// miss counts that no value was found.
func (c *LRU[K, V]) miss(hash uint64, key K) {
	c.tally(hash).misses.Add(1)
	if c.opts.Sink != nil {
		c.sample(SignalMiss, key)
	}
}

// sample raises every n-th signal: n is [Options.SampleEvery].
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

// signalOf is the signal of an entry that was removed for that reason.
var signalOf = [...]string{ReasonEvicted: SignalEvicted, ReasonExpired: SignalExpired, ReasonInvalidated: SignalInvalidated, ReasonReplaced: ""}

// unlock unlocks a shard, raises the signals of removed entries, and calls OnRemoved.
func (c *LRU[K, V]) unlock(s *shard[K, V]) {
	for _, r := range s.unlock() {
		if name := signalOf[r.reason]; name != "" && c.opts.Sink != nil {
			c.raise(name, r.key)
		}
		c.onRemoved(r)
	}
}

// onRemoved calls OnRemoved. A panic is counted.
func (c *LRU[K, V]) onRemoved(r removal[K, V]) {
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
