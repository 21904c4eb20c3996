package lru

import (
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure an [LRU]. The zero value is the default; for durations and
// HotAfter a negative value means none.
type Options[K comparable, V any] struct {
	// Capacity is how many entries the cache holds at most; 0 means 1000.
	Capacity int
	// TTL is how long after its last access an entry expires; 0 means 5
	// minutes, negative never.
	TTL time.Duration
	// MaxAge is how long after it was stored a value expires, however often it
	// is read; 0 and negative mean no limit.
	MaxAge time.Duration
	// HotAfter is how many accesses make an entry hot, storing it being the
	// first; 0 means 5, negative that none gets hot.
	HotAfter int
	// HotTTL takes the place of a shorter TTL for hot entries; 0 means 30
	// minutes, negative none.
	HotTTL time.Duration

	// Sink is where the cache raises its signals; nil means that it raises
	// none.
	Sink *core.Sink
	// SampleEvery n raises one of n [SignalHit], [SignalHot] and [SignalMiss],
	// counted together; 0 means 1, which is all. The other signals are always
	// raised.
	SampleEvery int

	// OnRemoved is called with every value that leaves the cache, for instance
	// to close it, before the call that removed it returns, and maybe by several
	// goroutines at once. No lock is held. Who got the value before may still
	// use it. A panic is counted in [Stats] and harms nobody else.
	OnRemoved func(key K, value V, reason Reason)
}

// A Reason says why a value left the cache.
type Reason uint8

const (
	ReasonEvicted     Reason = iota + 1 // for another entry
	ReasonExpired                       // its time was over
	ReasonInvalidated                   // by Invalidate or Clear
	ReasonReplaced                      // by another value of its key
)

func (r Reason) String() string {
	switch r {
	case ReasonEvicted:
		return "evicted"
	case ReasonExpired:
		return "expired"
	case ReasonInvalidated:
		return "invalidated"
	case ReasonReplaced:
		return "replaced"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

const (
	defaultCapacity = 1000
	defaultTTL      = 5 * time.Minute
	defaultHotAfter = 5
	defaultHotTTL   = 30 * time.Minute
)

// resolved returns the options with defaults in place of zeroes, and what stands for
// none in place of negatives, or says what is wrong with them.
func (o Options[K, V]) resolved() (Options[K, V], error) {
	var errs []error
	atLeastOne := func(field string, value *int, normally int) {
		if *value == 0 {
			*value = normally
		}
		if *value < 0 {
			errs = append(errs, fmt.Errorf("lru: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	span := func(value *time.Duration, normally, none time.Duration) {
		switch {
		case *value == 0:
			*value = normally
		case *value < 0:
			*value = none
		}
	}
	atLeastOne("Capacity", &o.Capacity, defaultCapacity)
	atLeastOne("SampleEvery", &o.SampleEvery, 1)
	span(&o.TTL, defaultTTL, never)
	span(&o.MaxAge, never, never)
	span(&o.HotTTL, defaultHotTTL, 0)
	switch {
	case o.HotAfter == 0:
		o.HotAfter = defaultHotAfter
	case o.HotAfter < 0:
		o.HotAfter = 0
	}
	return o, errors.Join(errs...)
}
