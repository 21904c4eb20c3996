package sqlitewriter

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Writer]. The zero value is the default. All handles of a file share the
// options of the first handle: the options of a later handle must be zero or equal.
type Options struct {
	// Name is the key of the signals, and part of errors; "" means the last element of the path,
	// without symbolic links.
	//
	//ephemeral:none
	Name string
	// Sink is where signals are raised, and where InvalidateOn listens; nil means no signals.
	Sink *signals.Sink

	// MaxQueued is how many writes may wait for their transaction; 0 means 1024. Further calls of
	// Exec, Batch and Tx wait for room. It must not be negative.
	MaxQueued int
	// MaxGroup is the maximum number of writes in a transaction; 0 means 256, negative means 1.
	MaxGroup int
	// TxTimeout is how long the function of a [Writer.Tx] may run before its context ends;
	// 0 means 30 seconds, negative no limit.
	TxTimeout time.Duration
	// BusyTimeout is how long writes wait for a program that uses the file without the lock file,
	// PATH.lock; 0 means 10 seconds, negative no wait. Then all waiting writes get [ErrBusy], even
	// those that came later. Open waits for the same time for a file that is not in WAL mode. The
	// maximum is 24 days; a longer time means the same.
	BusyTimeout time.Duration

	// MaxReaders is how many connections [Writer.DB] has at most; 0 means the number of
	// processors, but not less than 4; negative no limit.
	MaxReaders int
	// Capacity is how many values [Read] keeps at most; 0 means 1000. It must not be negative.
	Capacity int
	// TTL is how long [Read] keeps a value after its load, however often the value is used; 0 means
	// 5 minutes, negative no limit. A write of another process invalidates no key, so Read can miss
	// it for that long.
	TTL time.Duration
	// InvalidateOn is a pattern of signals on Sink, see [signals.Match]; "" means
	// "cache.invalidate:*". A signal that matches invalidates one key of [Read]. The key is the
	// text after "cache.invalidate:" in the name of the signal, or else the key of the signal. If
	// the signal has neither, it invalidates all keys. The pattern must not match signals of this
	// package.
	//
	//ephemeral:pattern
	InvalidateOn string
}

// resolved returns the options with defaults in place of zeroes, except Name, or an error.
func (o Options) resolved() (Options, error) {
	o.MaxQueued = cmp.Or(o.MaxQueued, 1024)
	o.MaxGroup = max(1, cmp.Or(o.MaxGroup, 256))
	if o.TxTimeout = cmp.Or(o.TxTimeout, 30*time.Second); o.TxTimeout < 0 {
		o.TxTimeout = math.MaxInt64
	}
	o.BusyTimeout = min(max(0, cmp.Or(o.BusyTimeout, 10*time.Second)), math.MaxInt32*time.Millisecond) // as in SQLite
	o.MaxReaders = cmp.Or(o.MaxReaders, max(4, runtime.GOMAXPROCS(0)))
	o.Capacity = cmp.Or(o.Capacity, 1000)
	o.TTL = cmp.Or(o.TTL, 5*time.Minute)
	o.InvalidateOn = cmp.Or(o.InvalidateOn, CommandInvalidate+":*")
	if o.MaxQueued < 0 || o.Capacity < 0 {
		return o, fmt.Errorf("sqlitewriter: Options.MaxQueued %d and Options.Capacity %d must not be negative", o.MaxQueued, o.Capacity)
	}
	return o, nil
}
