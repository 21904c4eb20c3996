package slidingcache

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrNotFound is what a load function returns, wrapped or not, for a key that has no
// value: see [Options.NegativeTTL].
var ErrNotFound = errors.New("slidingcache: not found")

// Options configure a [Cache] with keys of type K. The zero value is the default. For durations
// and MaxConcurrency, a negative value means none.
type Options[K comparable] struct {
	// Name is the name of the coordinator of loads, and the source of the signals that
	// loads raise; "" means "slidingcache".
	Name string
	// Sink is where the cache raises its signals; nil means one of its own.
	Sink *core.Sink

	// Sliding is how long after it was stored, or got last, a value expires; 0 means
	// 5 minutes, negative never.
	Sliding time.Duration
	// Absolute is how long after it was stored a value expires, however often it is
	// got; 0 means 1 hour, negative never.
	Absolute time.Duration
	// Capacity is how many keys the cache holds at most; 0 means 1000.
	Capacity int
	// MaxConcurrency is how many loads run at once, besides loads that wait for another
	// load, see [Cache.Get]. Others wait for their turn: first the loads that other
	// loads wait for, then the loads that other callers wait for, then refreshes. 0
	// means 64, negative any number.
	MaxConcurrency int

	// RefreshAfter is the age at which a value that is got is loaded again in the
	// background. Callers get the old value until the new one is there, and, if the
	// load fails, until the old value expires. After a failure the refresh is tried
	// again after another RefreshAfter. A Get that finds the value expired waits for a
	// refresh that runs, and if that fails, for another load. 0 and negative mean
	// never. It must be less than Absolute.
	RefreshAfter time.Duration
	// StaleOnError is how long after its expiry a value is still returned when a load
	// fails; 0 and negative mean not at all.
	StaleOnError time.Duration
	// NegativeTTL is how long the cache remembers that a key has no value; 0 and
	// negative mean not at all. No access prolongs it.
	NegativeTTL time.Duration
	// NotFound reports whether an error of a load means that the key has no value; nil
	// accepts errors that wrap [ErrNotFound].
	NotFound func(err error) bool

	// InvalidateOn is a pattern, see [core.Match], of signals on Sink that invalidate
	// keys: the key that KeyOf returns, or all keys if the signal has no key and KeyOf
	// returns none. It must not match signals of the cache. "" means none. A cache with
	// InvalidateOn is kept alive by its sink until it is closed.
	InvalidateOn string
	// KeyOf returns the cache's key that a signal is about, or false. nil means the
	// signal's key, if it has one; then K must be a kind of string.
	KeyOf func(s core.Signal) (K, bool)
	// KeyText returns what stands for a key in signals and in the view of loads; nil
	// means the key itself, in the form of fmt.Sprint. Only the first 128 bytes of a
	// longer text are used.
	KeyText func(key K) string

	// SampleEvery n raises one of n [SignalHit], [SignalPeeked], [SignalMiss] and
	// [SignalShared], counted together; 0 means none, so that reads cost nothing for
	// it. [Stats] counts all of them.
	SampleEvery int
	// RaiseEvictions makes the cache raise [SignalCold] and [SignalExpired], each of which
	// costs about as much as storing a value. [Stats] counts evictions in any case.
	RaiseEvictions bool
}

// resolved returns the options with defaults in place of zeroes, and the durations as times, or
// says what is wrong.
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
		o.Sink = core.NewSink(core.SinkOptions{})
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

	if o.NotFound == nil {
		o.NotFound = func(err error) bool { return errors.Is(err, ErrNotFound) }
	}
	textual := reflect.TypeFor[K]().Kind() == reflect.String
	if o.InvalidateOn != "" {
		own := func(name string) bool { return core.Match(o.InvalidateOn, name) }
		if i := slices.IndexFunc(signals, own); i >= 0 {
			refuse("InvalidateOn is %q, but must not match %s, which the cache raises itself", o.InvalidateOn, signals[i])
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

// keyOfText makes a key, of a kind of string, of a signal's.
func keyOfText[K comparable](s core.Signal) (key K, ok bool) {
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
