package lru

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure an [LRU]. The zero value is the default. For durations and HotAfter, a
// negative value means none.
type Options[K comparable, V any] struct {
	// Capacity is the largest number of entries; 0 means 1000.
	Capacity int
	// TTL is how long after its last access an entry expires; 0 means 5
	// minutes, negative never.
	TTL time.Duration
	// MaxAge is how long after it was stored a value expires, however often it
	// is read; 0 and negative mean no limit.
	MaxAge time.Duration
	// HotAfter is how many accesses make an entry hot; storing it is the first
	// one. 0 means 5, negative that no entry gets hot.
	HotAfter int
	// HotTTL replaces a shorter TTL for hot entries; 0 means 30 minutes,
	// negative none.
	HotTTL time.Duration

	// Sink is where the cache raises its signals; nil means that it raises none. Their key is the
	// key of the entry, so caches whose signals must not be mixed need different sinks.
	Sink *signals.Sink
	// SampleEvery n raises every n-th of the signals [SignalHit], [SignalHot] and
	// [SignalMiss], counted together; 0 means 1: all of them. All other signals are raised.
	SampleEvery int

	// OnRemoved is called with every value that leaves the cache, for example to
	// close it. It is called before the call that removed the value returns, and
	// maybe by several goroutines at once. No lock is held. Callers that got the
	// value before may still use it. A panic is counted in [Stats] and has no
	// other effect.
	OnRemoved func(key K, value V, reason Reason)
}

// A Reason says why a value left the cache.
type Reason uint8

const (
	ReasonEvicted     Reason = iota + 1 // for another entry
	ReasonExpired                       // it has expired
	ReasonInvalidated                   // by Remove or Clear
	ReasonReplaced                      // by another value of its key
)

var reasonNames = [...]string{ReasonEvicted: "evicted", ReasonExpired: "expired", ReasonInvalidated: "invalidated", ReasonReplaced: "replaced"}

func (r Reason) String() string {
	if r == 0 || r > ReasonReplaced {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return reasonNames[r]
}

// resolved returns the options with defaults, or says what is wrong with them. The TTL stays
// negative if entries never expire.
func (o Options[K, V]) resolved() (Options[K, V], error) {
	o.Capacity, o.SampleEvery = cmp.Or(o.Capacity, 1000), cmp.Or(o.SampleEvery, 1)
	o.TTL = cmp.Or(o.TTL, 5*time.Minute)
	if o.MaxAge <= 0 {
		o.MaxAge = never
	}
	o.HotAfter, o.HotTTL = max(0, cmp.Or(o.HotAfter, 5)), max(0, cmp.Or(o.HotTTL, 30*time.Minute))
	return o, errors.Join(
		check.NotNegative("lru: Options.Capacity", o.Capacity),
		check.NotNegative("lru: Options.SampleEvery", o.SampleEvery),
	)
}
