package slidingcache

import (
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// What a cache raises on its sink. The key of a signal is the text of the cache's
// key: see [Options.KeyText]. Signals of a load are raised by its operation.
const (
	SignalHit    = "cache.hit"       // Get found a value, or that there is none; sampled
	SignalPeek   = "cache.peek"      // GetIfPresent found a value; sampled
	SignalMiss   = "cache.miss"      // neither was found; sampled
	SignalShared = "cache.hit.dedup" // Get waits for a load that is under way; sampled

	SignalLoading    = "cache.compute.start" // a load begins
	SignalLoaded     = "cache.compute.done"  // it has a value
	SignalRefreshing = "cache.refresh.start" // a load begins whose result nobody waits for
	SignalRefreshed  = "cache.refresh.done"  // it has a value
	SignalNotFound   = "cache.notfound"      // a load found that the key has no value
	SignalError      = "cache.error"         // a load failed; see [LoadFailed]
	SignalStale      = "cache.stale"         // Get returned an expired value because the load failed

	SignalInvalidate = "cache.invalidate"    // a value was removed by Invalidate or InvalidateOn
	SignalClear      = "cache.clear"         // everything was removed by Clear or InvalidateOn; no key
	SignalExpired    = "cache.evict.expired" // a record was removed because its time was over; with [Options.RaiseEvictions]
	SignalCold       = "cache.evict.cold"    // a record made room for another; likewise
)

// signals lists them.
var signals = []string{
	SignalHit, SignalPeek, SignalMiss, SignalShared,
	SignalLoading, SignalLoaded, SignalRefreshing, SignalRefreshed, SignalNotFound, SignalError, SignalStale,
	SignalInvalidate, SignalClear, SignalExpired, SignalCold,
}

// LoadFailed is [SignalError] with what went wrong.
var LoadFailed = core.NewKind[error](SignalError)

// maxText is how many bytes of a key's text are used.
const maxText = 128

// text is what stands for a key in signals. It calls foreign code.
func (c *Cache[K, V]) text(key K) string {
	text := c.opts.KeyText(key)
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > maxText-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// sample raises one of so many signals.
func (c *Cache[K, V]) sample(name string, key K) {
	if every := c.opts.SampleEvery; every > 0 && c.sampled.Add(1)%uint64(every) == 0 {
		c.opts.Sink.RaiseKey(name, c.text(key))
	}
}

// raise raises a signal of a load.
func (f *flight[K, V]) raise(name string) { f.load.raiser.RaiseKey(name, f.text) }

// removals are keys whose records the store has dropped by itself. It says so while
// locks are held, and nothing is raised under a lock, so they are kept until who
// made the store do so has released it.
type removals[K comparable] struct {
	some atomic.Bool

	mu   sync.Mutex
	list []removal[K]
}

type removal[K comparable] struct {
	key  K
	name string // of the signal
}

// add is called by the store.
func (r *removals[K]) add(key K, reason lru.Reason) {
	name := SignalCold
	switch reason {
	case lru.ReasonEvicted:
	case lru.ReasonExpired:
		name = SignalExpired
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, removal[K]{key, name})
	r.some.Store(true)
}

func (r *removals[K]) take() []removal[K] {
	if !r.some.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	r.some.Store(false)
	return list
}

// tell raises what the store has dropped. No lock is held.
func (c *Cache[K, V]) tell() {
	for _, gone := range c.removals.take() {
		c.opts.Sink.RaiseKey(gone.name, c.text(gone.key))
	}
}
