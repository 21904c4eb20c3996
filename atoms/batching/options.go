package batching

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// never is later than any time.
const never time.Duration = math.MaxInt64

// Options configure a batcher of items of type T. The zero value is the default.
type Options[T any] struct {
	// Name tells batchers apart: it is the Source of the signals that they and
	// their flushes raise. "" means "batching".
	Name string
	// Sink is where these signals are raised; nil means one of the batcher's own.
	Sink *core.Sink

	// MaxSize is how many items a batch has at most; one that has as many is
	// flushed. 0 means 32.
	MaxSize int
	// MaxDelay is how long a batch takes items, counted from its first item, before
	// it is flushed; 0 means 1 second, negative no limit.
	MaxDelay time.Duration
	// MaxBytes is how many bytes the items of a batch have together at most, as SizeOf
	// returns them; 0 means no limit. A batch is flushed when it has as many, or when
	// the next item would not fit in. An item that is larger is not accepted: see
	// [ErrTooLarge].
	MaxBytes int
	// SizeOf returns the bytes of an item. It may return an estimate; a negative number
	// counts as 0. It is called once for each item, on the goroutine that enqueues it.
	// MaxBytes and MaxQueuedBytes require it.
	SizeOf func(T) int

	// MaxQueued is how many items may wait to be flushed before Enqueue and Do wait
	// and TryEnqueue returns [core.ErrFull]; 0 means 1024. Items that are being flushed
	// do not count. When an item finds no room, the batch with the oldest item is flushed.
	MaxQueued int
	// MaxQueuedBytes is how many bytes these items may have together; 0 means no
	// limit. It must not be less than MaxBytes.
	MaxQueuedBytes int
	// DropOldest drops the items that have waited longest, instead of waiting or
	// returning an error, when there is no room for a new item.
	DropOldest bool

	// Key, if there is one, returns the key of an item. The items of each key have
	// batches of their own, which are flushed in order, one at a time. Keys without
	// items are forgotten. Key is called once for each item, on the goroutine that
	// enqueues it.
	Key func(T) string
	// MaxConcurrency is how many batches are flushed at once; 0 means 1. With more,
	// batches without a key may overlap and overtake each other.
	MaxConcurrency int

	// Bisect finds the items that make a batch fail: when the flush of several items
	// returns an error that is not [ItemErrors], or panics, each half of them is
	// flushed by itself, and so on. A batch of n items of which k are bad takes about
	// 2k*log2(n) more calls, and 2n-1 calls at most; its good items may be flushed
	// several times. Use it where an error is caused by an item. For errors that pass,
	// retry the batch.
	Bisect bool
	// OnError gets items that came by Enqueue or TryEnqueue and were accepted, but not
	// flushed, each item once. The error is that of the flush, which is [ItemErrors] if
	// the items have different ones; [core.ErrDropped] for dropped items; and for
	// cancelled ones the cause, such as [core.ErrStopped] and [core.ErrClosed]. OnError
	// is called with no lock held: by the operation of the batch before it ends, while
	// it has its slot; by the Enqueue that dropped an item; or by Cancel, Abort, Stop or
	// Close.
	OnError func(items []T, err error)

	// MaxTracked is how many finished batches Operations still shows; 0 means 200,
	// negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
}

// resolved returns the options with defaults in place of zeroes and the largest
// values in place of "no limit", and an error if something is wrong with them.
func (o Options[T]) resolved() (Options[T], error) {
	var errs []error
	count := func(field string, value *int, normally int) {
		if *value = cmp.Or(*value, normally); *value < 0 {
			errs = append(errs, fmt.Errorf("batching: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	bytes := func(field string, value *int) {
		if *value > 0 && o.SizeOf == nil {
			errs = append(errs, fmt.Errorf("batching: Options.%s is %d, but there is no SizeOf", field, *value))
		}
		count(field, value, math.MaxInt)
	}
	if o.MaxQueuedBytes > 0 && o.MaxQueuedBytes < o.MaxBytes {
		errs = append(errs, fmt.Errorf("batching: Options.MaxQueuedBytes is %d, but must not be less than MaxBytes, which is %d",
			o.MaxQueuedBytes, o.MaxBytes))
	}
	count("MaxSize", &o.MaxSize, 32)
	bytes("MaxBytes", &o.MaxBytes)
	count("MaxQueued", &o.MaxQueued, 1024)
	bytes("MaxQueuedBytes", &o.MaxQueuedBytes)
	count("MaxConcurrency", &o.MaxConcurrency, 1)
	if o.MaxDelay = cmp.Or(o.MaxDelay, time.Second); o.MaxDelay < 0 {
		o.MaxDelay = never
	}
	o.Name = cmp.Or(o.Name, "batching")
	return o, errors.Join(errs...)
}
