package batching

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// never is later than any time.
const never time.Duration = math.MaxInt64

// Options configure a batcher of items of type T. The zero value is the default.
type Options[T any] struct {
	// Name is the Source of the signals that the batcher and its flushes raise. "" means
	// "batching".
	//
	//ephemeral:none
	Name string
	// Sink is where these signals are raised; nil means a new sink.
	Sink *signals.Sink

	// MaxSize is the maximum number of items in a batch. A batch of this size is flushed. 0
	// means 32.
	MaxSize int
	// MaxDelay is the time from the first item of a batch until the batch is due; 0 means 1
	// second, negative no limit.
	MaxDelay time.Duration
	// MaxBytes is the maximum number of bytes in a batch, as SizeOf counts them; 0 means no
	// limit. A batch is flushed when it reaches MaxBytes, or when the next item would exceed
	// it. A single item with more bytes is not accepted: see [ErrTooLarge].
	MaxBytes int
	// SizeOf returns the bytes of an item. It may return an estimate; a negative number
	// counts as 0. It is called once for each item, on the goroutine that enqueues it.
	// MaxBytes and MaxQueuedBytes require it.
	SizeOf func(T) int

	// MaxQueued is how many items may wait to be flushed; 0 means 1024. Items that are being
	// flushed do not count. When there is no room for a new item, Enqueue and Do wait,
	// TryEnqueue returns [core.ErrFull], and the batch with the oldest item is due.
	MaxQueued int
	// MaxQueuedBytes is how many bytes the waiting items may have together; 0 means no limit.
	// It must not be less than MaxBytes.
	MaxQueuedBytes int
	// DropOldest drops the items that have waited longest when there is no room for a new
	// item. Then Enqueue, Do and TryEnqueue accept the item at once.
	DropOldest bool

	// Key returns the key of an item; nil means no keys. The items of each key have
	// separate batches, which are flushed in order, one at a time. Keys without items take
	// no memory. Key is called once for each item, on the goroutine that enqueues it.
	Key func(T) string
	// MaxConcurrency is how many batches are flushed at once; 0 means 1. If it is more than
	// 1, batches without a key may be flushed at the same time and end in another order.
	MaxConcurrency int

	// Bisect finds the items that make a batch fail. If a flush of several items panics, or
	// returns an error that is not [ItemErrors], each half of the items is flushed by itself,
	// and so on. A batch of n items with k bad ones takes about 2k*log2(n) more calls, at most
	// 2n-1 in all. Good items may be flushed several times. Use it if items cause the errors.
	// If errors are temporary, retry the batch instead.
	Bisect bool
	// OnError gets each item of Enqueue and TryEnqueue that was accepted and not flushed, once.
	// It may be nil. If a flush failed, err is its error. If the flush returned [ItemErrors] or
	// Bisect split it, err is ItemErrors with one error for each item passed to OnError: they
	// may be fewer than the items of the batch. For dropped items err is [core.ErrDropped]. For
	// cancelled items err is the cause, such as [core.ErrStopped].
	//
	// OnError is called with no lock held: by the operation of the batch before it ends, by
	// the Enqueue that drops an item, or by Cancel, Abort, Stop or Close.
	OnError func(items []T, err error)
}

// resolved returns the options with defaults in place of zeroes, and the largest values in
// place of "no limit". It returns an error if an option is wrong.
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
