package sqlitewriter

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Writer]. The zero value is the default. All handles of a file share the
// options of the first handle: the options of a later handle must be zero or equal.
type Options struct {
	// Name is the key of the signals, and part of errors; "" means the last element of the path.
	Name string
	// Sink is where signals are raised, and where InvalidateOn listens; nil means no signals.
	Sink *core.Sink

	// MaxQueued is how many writes may wait for their transaction before Exec, Batch and
	// Tx wait for room; 0 means 1024. It must not be negative.
	MaxQueued int
	// MaxGroup is the maximum number of writes in a transaction; 0 means 256, negative means
	// 1.
	MaxGroup int
	// TxTimeout is how long the function of a [Writer.Tx] may run before its context ends:
	// other writes wait for it. 0 means 30 seconds, negative no limit.
	TxTimeout time.Duration
	// BusyTimeout is how long a write waits for another program that does not use the lock
	// file and is writing; 0 means 10 seconds, negative not at all.
	BusyTimeout time.Duration

	// MaxReaders is how many connections [Writer.DB] has at most; 0 means the number of
	// processors, but not less than 4; negative no limit.
	MaxReaders int
	// Capacity is how many values [Read] keeps at most; 0 means 1000. It must not be negative.
	Capacity int
	// TTL is how long a value is kept after its last use; 0 means 5 minutes, negative no
	// limit. Values that are used often are kept for 30 minutes after that: see core/lru.
	TTL time.Duration
	// InvalidateOn is a pattern, see [core.Match], of signals on Sink that invalidate a key
	// of [Read]: the text after "cache.invalidate:" in the signal's name, or else the
	// signal's key. A signal with neither invalidates all keys. It must not match signals
	// of this package. "" means "cache.invalidate:*".
	InvalidateOn string
}

// resolved returns the options with defaults in place of zeroes, or says what is wrong with
// them.
func (o Options) resolved(name string) (Options, error) {
	o.Name = cmp.Or(o.Name, name)
	o.MaxQueued = cmp.Or(o.MaxQueued, 1024)
	o.MaxGroup = max(1, cmp.Or(o.MaxGroup, 256))
	if o.TxTimeout = cmp.Or(o.TxTimeout, 30*time.Second); o.TxTimeout < 0 {
		o.TxTimeout = math.MaxInt64
	}
	o.BusyTimeout = max(0, cmp.Or(o.BusyTimeout, 10*time.Second))
	o.MaxReaders = cmp.Or(o.MaxReaders, max(4, runtime.GOMAXPROCS(0)))
	o.Capacity = cmp.Or(o.Capacity, 1000)
	o.TTL = cmp.Or(o.TTL, 5*time.Minute)
	o.InvalidateOn = cmp.Or(o.InvalidateOn, CommandInvalidate+":*")
	if o.MaxQueued < 0 || o.Capacity < 0 {
		return o, fmt.Errorf("sqlitewriter: Options.MaxQueued %d and Options.Capacity %d must not be negative", o.MaxQueued, o.Capacity)
	}
	return o, nil
}
