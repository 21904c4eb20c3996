package batching

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals that a batcher raises. The first three are raised by the operation of the
// batch, with its key, and carry a [Batch]: see [Flushed], [Failed] and [Bisected].
const (
	// SignalFlushed: all items of a batch were flushed.
	SignalFlushed = "batch.flushed"
	// SignalFailed: some items of a batch were not flushed.
	SignalFailed = "batch.failed"
	// SignalBisected: the flush of a batch failed and is tried again with halves of it.
	SignalBisected = "batch.bisected"
	// SignalDropped is raised on the sink, with the batcher's name as key, when an
	// item is dropped for a newer one, unless the item before did the same.
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

// A Batch describes a batch whose flush has ended or, in [Bisected], is going on.
type Batch struct {
	Items    int           `json:"items"`    // in it when its flush began
	Bytes    int           `json:"bytes"`    // of these items, as SizeOf returns them
	Reason   Reason        `json:"reason"`   // why it was flushed
	Waited   time.Duration `json:"waited"`   // from when its first item came to when its flush began
	Duration time.Duration `json:"duration"` // of all calls together
	Calls    int           `json:"calls"`    // of the function; more than one only with Bisect
	Failed   int           `json:"failed"`   // items that were not flushed
	Err      error         `json:"-"`        // why; [ItemErrors] if the items have different errors
}

// A Reason says why a batch was flushed: the first thing that happened of these.
type Reason string

const (
	ReasonSize     Reason = "size"     // it had MaxSize items
	ReasonBytes    Reason = "bytes"    // it had MaxBytes bytes, or the next item would not have fit in
	ReasonDelay    Reason = "delay"    // MaxDelay had passed
	ReasonDeadline Reason = "deadline" // half of the time had passed that a Do had
	ReasonRoom     Reason = "room"     // an item found no room in the queue
	ReasonFlush    Reason = "flush"    // Flush, Complete, Drain or WaitIdle was called
)
