package sqlitewriter

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Writer]. The zero value is the default. All handles of a file share
// the options of the first one: a field of a later one must be zero or the same.
type Options struct {
	// Name is the key of the signals, and stands in errors; "" means the last element of the path.
	Name string
	// Sink is where signals are raised, and where InvalidateOn listens; nil means that there are none.
	Sink *core.Sink

	// MaxQueued is how many writes may wait for their transaction before Exec, Batch and
	// Tx wait for room; 0 means 1024.
	MaxQueued int
	// MaxGroup is how many writes share a transaction at most; 0 means 256, negative
	// that each has a transaction of its own.
	MaxGroup int
	// TxTimeout bounds the function of a [Writer.Tx], because other writes wait for it. 0
	// means 30 seconds, negative no limit.
	TxTimeout time.Duration
	// BusyTimeout is how long a write waits for a program that writes without the lock
	// file; 0 means 10 seconds, negative not at all.
	BusyTimeout time.Duration

	// MaxReaders is how many connections [Writer.DB] has at most; 0 means the number of
	// processors, but not less than 4.
	MaxReaders int
	// Capacity is how many values [Read] keeps at most; 0 means 1000.
	Capacity int
	// TTL is how long a value is kept after its last use; 0 means 5 minutes, negative no
	// limit. Values that are used often are kept for 30 minutes, see core/lru.
	TTL time.Duration
	// InvalidateOn is a pattern, see [core.Match], of signals on Sink that invalidate a key
	// of [Read]: the text after "cache.invalidate:" in the signal's name, or else the
	// signal's key. A signal with neither invalidates all keys. It must not match signals
	// of this package. "" means "cache.invalidate:*".
	InvalidateOn string
	// SampleEvery n raises one of n signals of reads: cache.hit, cache.hot and
	// cache.miss. 0 means 1, so all of them.
	SampleEvery int
}

const defaultInvalidateOn = CommandInvalidate + ":*"

// resolved returns the options with defaults in place of zeroes, but for Name, or says what
// is wrong with them.
func (o Options) resolved() (Options, error) {
	var errs []error
	count := func(field string, value *int, normally int) {
		if *value = cmp.Or(*value, normally); *value < 0 {
			errs = append(errs, fmt.Errorf("sqlitewriter: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	count("MaxQueued", &o.MaxQueued, 1024)
	count("MaxReaders", &o.MaxReaders, max(4, runtime.GOMAXPROCS(0)))
	count("Capacity", &o.Capacity, 1000)
	count("SampleEvery", &o.SampleEvery, 1)
	o.MaxGroup = max(1, cmp.Or(o.MaxGroup, 256))
	o.BusyTimeout = max(0, cmp.Or(o.BusyTimeout, 10*time.Second))
	o.TTL = cmp.Or(o.TTL, 5*time.Minute)
	if o.TxTimeout = cmp.Or(o.TxTimeout, 30*time.Second); o.TxTimeout < 0 {
		o.TxTimeout = math.MaxInt64
	}
	o.InvalidateOn = cmp.Or(o.InvalidateOn, defaultInvalidateOn)
	if i := slices.IndexFunc(signals, func(name string) bool { return core.Match(o.InvalidateOn, name) }); i >= 0 {
		errs = append(errs, fmt.Errorf("sqlitewriter: Options.InvalidateOn is %q, but must not match %s, which the writer raises itself",
			o.InvalidateOn, signals[i]))
	}
	return o, errors.Join(errs...)
}

// joins returns an error if a file that is open with options o cannot be opened with other
// ones, which were given as given.
func (o Options) joins(given, other Options) error {
	is, wanted, was := reflect.ValueOf(o), reflect.ValueOf(other), reflect.ValueOf(given)
	for i := range is.NumField() {
		if !was.Field(i).IsZero() && !is.Field(i).Equal(wanted.Field(i)) {
			return fmt.Errorf("sqlitewriter: %q is open with Options.%s %v, not %v", o.Name, is.Type().Field(i).Name, is.Field(i), wanted.Field(i))
		}
	}
	return nil
}
