package batching

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals that a batcher raises. The first three are raised by the operation of the
// batch, with its key, and carry a [Batch]: see [Flushed], [Failed] and [Bisected].
const (
	// SignalFlushed tells that all items of a batch were flushed.
	SignalFlushed = "batch.flushed"
	// SignalFailed tells that some items of a batch were not.
	SignalFailed = "batch.failed"
	// SignalBisected tells that the flush of a batch failed and will be tried with
	// halves of it.
	SignalBisected = "batch.bisected"
	// SignalDropped is raised on the sink, with the batcher's name as key, when an
	// item is dropped for a newer one, unless the item that came before did the same.
	SignalDropped = "batch.dropped"
)

// Kinds of the signals that carry a [Batch].
var (
	Flushed  = core.NewKind[Batch](SignalFlushed)
	Failed   = core.NewKind[Batch](SignalFailed)
	Bisected = core.NewKind[Batch](SignalBisected)
)

// ValueBatch is the name under which an operation that has flushed a batch stores its
// [Batch], for Lookup and Operations; see [core.Value].
const ValueBatch = "batch"

// A Batch is what a batcher tells of a batch.
type Batch struct {
	Items    int           `json:"items"`    // in it when its flush began
	Bytes    int           `json:"bytes"`    // of these, as told by SizeOf
	Reason   Reason        `json:"reason"`   // why it was flushed when it was
	Waited   time.Duration `json:"waited"`   // from when the first item came to when the flush began
	Duration time.Duration `json:"duration"` // of all calls together
	Calls    int           `json:"calls"`    // of the function; more than one only with Bisect
	Failed   int           `json:"failed"`   // how many of the items were not flushed
	Err      error         `json:"-"`        // why; [ItemErrors] if that depends on the item
}

// A Reason says why a batch was flushed when it was.
type Reason string

const (
	ReasonSize     Reason = "size"     // it had MaxSize items
	ReasonBytes    Reason = "bytes"    // it had MaxBytes bytes, or the next item would not have fit in
	ReasonDelay    Reason = "delay"    // MaxDelay had passed
	ReasonDeadline Reason = "deadline" // a Do could not wait longer
	ReasonRoom     Reason = "room"     // an item found no room in the queue
	ReasonFlush    Reason = "flush"    // Flush, Complete or Drain was called
)
