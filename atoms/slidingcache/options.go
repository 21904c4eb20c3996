package slidingcache

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ErrNotFound is the error, wrapped or not, with which a load function says that a key has no
// value: see [Options.NegativeTTL].
var ErrNotFound = errors.New("slidingcache: not found")

// Options configure a [Cache] with keys of type K. The zero value is the default.
type Options[K comparable] struct {
	// Name is the name of the cache, and the source of the signals of loads; "" means
	// "slidingcache".
	//
	//ephemeral:none
	Name string
	// Sink is where the cache raises its signals; nil means a new sink.
	Sink *signals.Sink

	// Sliding is the time from the last access to a value, or from its storage, until it
	// expires; 0 means 5 minutes, negative never. An access is a call of Get or GetIfPresent.
	Sliding time.Duration
	// Absolute is the time from the storage of a value until it expires in any case; 0 means
	// 1 hour, negative never.
	Absolute time.Duration
	// Capacity is the maximum number of keys in the cache; 0 means 1000.
	Capacity int
	// MaxConcurrency is how many loads run at once; 0 means 64, negative any number. Loads
	// that wait for another load do not count, see [Cache.Get]. Other loads wait for their
	// turn: first the loads that a load waits for, then the loads that a caller waits for,
	// then refreshes.
	MaxConcurrency int

	// RefreshAfter is an age. When a value is older, a Get also loads it again in the
	// background; 0 and negative mean never. It must be less than Absolute. Until the new
	// value is there, callers get the old one. If the load fails, the old value stays until
	// it expires, and a Get tries again after another RefreshAfter.
	RefreshAfter time.Duration
	// StaleOnError is how long after its expiry a value is still returned if a load fails; 0
	// and negative mean not at all.
	StaleOnError time.Duration
	// NegativeTTL is how long the cache remembers that a key has no value, see [ErrNotFound]; 0 and negative
	// mean not at all. An access does not extend this time.
	NegativeTTL time.Duration

	// InvalidateOn is a pattern of signals on Sink, see [signals.Match]; "" means none. Such a
	// signal removes the key that KeyOf returns. If the signal has no key and KeyOf returns
	// false, it removes all keys. The pattern must not match signals of the cache. A cache
	// with InvalidateOn must be closed.
	//
	//ephemeral:pattern
	InvalidateOn string
	// KeyOf returns the key of the cache that a signal removes, or false. nil means the key
	// of the signal; then K must be a string type.
	KeyOf func(s signals.Signal) (K, bool)
	// KeyText returns the text of a key for signals and [Cache.Loads]; nil means
	// fmt.Sprint. The cache uses the first 128 bytes.
	KeyText func(key K) string

	// SampleEvery is the N in "raise every N-th of the signals of reads". These are
	// [lru.SignalHit], [lru.SignalMiss] and [SignalShared], counted together. 0 means
	// that none is raised. [Stats] counts all reads.
	SampleEvery int
}

// resolved returns the options with defaults in place of zeroes, and the durations as times, or
// an error.
func (o Options[K]) resolved() (Options[K], times, error) {
	var (
		t    times
		errs []error
	)
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("slidingcache: Options."+format, args...))
	}
	o.Name = cmp.Or(o.Name, "slidingcache")
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	if o.Capacity = cmp.Or(o.Capacity, 1000); o.Capacity < 0 {
		refuse("Capacity is %d, but must not be negative", o.Capacity)
	}
	if o.SampleEvery < 0 {
		refuse("SampleEvery is %d, but must not be negative", o.SampleEvery)
	}
	if o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 64); o.MaxConcurrency < 0 {
		o.MaxConcurrency = math.MaxInt32
	}

	span := func(value, normally time.Duration, none int64) int64 {
		if value = cmp.Or(value, normally); value <= 0 {
			return none
		}
		return int64(value)
	}
	t.sliding = span(o.Sliding, 5*time.Minute, never)
	t.absolute = span(o.Absolute, time.Hour, never)
	t.refresh = span(o.RefreshAfter, 0, never)
	t.stale = span(o.StaleOnError, 0, 0)
	t.negative = span(o.NegativeTTL, 0, 0)
	if o.RefreshAfter > 0 && t.refresh >= t.absolute {
		refuse("RefreshAfter is %v, but must be less than Absolute, which is %v", o.RefreshAfter, time.Duration(t.absolute))
	}

	textual := reflect.TypeFor[K]().Kind() == reflect.String
	if o.InvalidateOn != "" {
		own := func(name string) bool { return signals.Match(o.InvalidateOn, name) }
		if i := slices.IndexFunc(raised, own); i >= 0 {
			refuse("InvalidateOn is %q, but must not match %s, which the cache raises itself", o.InvalidateOn, raised[i])
		}
		if o.KeyOf == nil && !textual {
			refuse("KeyOf is nil, but InvalidateOn needs it to make a %v of a signal", reflect.TypeFor[K]())
		}
	}
	if o.KeyOf == nil && textual {
		o.KeyOf = keyOfText[K]
	}
	if o.KeyText == nil {
		o.KeyText = textOf[K]
	}
	return o, t, errors.Join(errs...)
}

// keyOfText makes a key of a string type from the key of a signal.
func keyOfText[K comparable](s signals.Signal) (key K, ok bool) {
	reflect.ValueOf(&key).Elem().SetString(s.Key)
	return key, s.Key != ""
}

// textOf makes text of any key.
func textOf[K comparable](key K) string {
	if text, ok := any(key).(string); ok {
		return text
	}
	return fmt.Sprint(key)
}
