package slidingcache

import (
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that a cache raises on its sink. The key of a signal is the text of the cache's
// key, see [Options.KeyText]. The signals of a load are raised by its operation.
const (
	SignalShared = "cache.shared" // Get waits for a load that is under way; sampled

	SignalLoading    = "cache.compute.started"   // a load begins
	SignalLoaded     = "cache.compute.completed" // a load has returned a value
	SignalRefreshing = "cache.refresh.started"   // a load in the background begins
	SignalRefreshed  = "cache.refresh.completed" // a load in the background has returned a value
	SignalNotFound   = "cache.absent"            // a load found that the key has no value
	SignalStale      = "cache.stale"             // Get returned an expired value because the load failed

)

// signals lists them.
var raised = []string{
	lru.SignalHit, lru.SignalMiss, SignalShared,
	SignalLoading, SignalLoaded, SignalRefreshing, SignalRefreshed, SignalNotFound, LoadFailed.Name(), SignalStale,
	lru.SignalInvalidated, lru.SignalCleared,
}

// LoadFailed: a load failed; the payload is the error.
var LoadFailed = signals.NewKind[error]("cache.failed")

// maxText is how many bytes of a key's text are used.
const maxText = 128

// text returns the text of a key. It calls the function of the user.
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

// sample raises every N-th of the signals of reads: see [Options.SampleEvery].
func (c *Cache[K, V]) sample(name string, key K) {
	if every := c.opts.SampleEvery; every > 0 && c.sampled.Add(1)%uint64(every) == 0 {
		c.opts.Sink.RaiseKey(name, c.text(key))
	}
}

// raise raises a signal of a load.
func (f *loading[K, V]) raise(name string) { f.operation.RaiseKey(name, f.text) }
