package batching

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

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
	// MaxDelay is how long a batch is filled, counted from its first item, before
	// it is flushed; 0 means 1 second, negative no limit.
	MaxDelay time.Duration
	// MaxBytes is how many bytes the items of a batch have together at most, as
	// told by SizeOf; 0 means no limit. A batch is flushed when it has as many, or
	// the next item would not fit in. An item that is larger than that is not
	// accepted: see [ErrTooLarge].
	MaxBytes int
	// SizeOf tells the bytes of an item, which may be an estimate, negative ones
	// being none. It is called once for each item, on the goroutine that brings
	// it. It is required by MaxBytes and MaxQueuedBytes.
	SizeOf func(T) int

	// FlushMargin is how long before the deadline of a Do its batch is flushed; 0
	// means as long as flushes take: the running mean and four times the mean
	// deviation, as RFC 6298 has it for retransmission, and at least 1
	// millisecond. Before the first flush has been measured it is half of the time
	// that the Do has. Negative means that deadlines are not heeded.
	FlushMargin time.Duration

	// MaxQueued is how many items may wait to be flushed before Enqueue and Do wait
	// and TryEnqueue refuses; 0 means 1024. Items that are being flushed do not
	// count. When there is no room and nothing else will make some, the batch with
	// the oldest item is flushed.
	MaxQueued int
	// MaxQueuedBytes is the same for the bytes of the items; 0 means no limit. It
	// must not be less than MaxBytes.
	MaxQueuedBytes int
	// DropOldest drops the items that have waited longest, instead of waiting or
	// refusing, when there is no room for one that comes.
	DropOldest bool

	// Key, if there is one, tells the key of an item: the items of each key have
	// batches of their own, which are flushed in order, one at a time. Keys without
	// items are forgotten. Key is called once for each item, on the goroutine that
	// brings it.
	Key func(T) string
	// MaxConcurrency is how many batches are flushed at once; 0 means 1. With more,
	// batches without a key may overlap and overtake each other.
	MaxConcurrency int

	// Bisect finds the items that make a batch fail: when the flush of several items
	// returns an error that is not [ItemErrors], or panics, each half of them is
	// flushed by itself, and so on. So a batch of n items of which k are bad takes
	// about 2k*log2(n) calls more, and 2n-1 calls at most; the good ones in it may
	// be flushed several times. Use it where errors come of items. For those that
	// pass, retry the batch.
	Bisect bool
	// OnError is told of the items that came by Enqueue or TryEnqueue and were
	// accepted, but then not flushed, each once: because the flush failed, with its
	// error, which is [ItemErrors] if it is not the same for all of items; because
	// the items were dropped, with [core.ErrDropped]; and because the batch was
	// cancelled, with the cause, after Close [core.ErrClosed]. It is called with no
	// lock held, by the operation of the batch before it ends, by the Enqueue that
	// dropped, or by Cancel or Close. While it runs in an operation, that has its
	// slot.
	OnError func(items []T, err error)

	// MaxTracked is how many finished batches Operations still shows; 0 means 200,
	// negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
}

// resolved returns the options with defaults in place of zeroes and the largest
// values in place of "no limit", or says what is wrong with them.
func (o Options[T]) resolved() (Options[T], error) {
	var errs []error
	count := func(field string, value *int, normally int) {
		switch {
		case *value == 0:
			*value = normally
		case *value < 0:
			errs = append(errs, fmt.Errorf("batching: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	needsSizeOf := func(field string, value int) {
		if value > 0 && o.SizeOf == nil {
			errs = append(errs, fmt.Errorf("batching: Options.%s is %d, but there is no SizeOf to tell the bytes of an item", field, value))
		}
	}
	needsSizeOf("MaxBytes", o.MaxBytes)
	needsSizeOf("MaxQueuedBytes", o.MaxQueuedBytes)
	if o.MaxQueuedBytes > 0 && o.MaxQueuedBytes < o.MaxBytes {
		errs = append(errs, fmt.Errorf("batching: Options.MaxQueuedBytes is %d, but must not be less than MaxBytes, which is %d", o.MaxQueuedBytes, o.MaxBytes))
	}
	count("MaxSize", &o.MaxSize, 32)
	count("MaxBytes", &o.MaxBytes, math.MaxInt)
	count("MaxQueued", &o.MaxQueued, 1024)
	count("MaxQueuedBytes", &o.MaxQueuedBytes, math.MaxInt)
	count("MaxConcurrency", &o.MaxConcurrency, 1)
	switch {
	case o.MaxDelay == 0:
		o.MaxDelay = time.Second
	case o.MaxDelay < 0:
		o.MaxDelay = never
	}
	if o.Name == "" {
		o.Name = "batching"
	}
	return o, errors.Join(errs...)
}
