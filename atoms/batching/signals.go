package batching

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that a batcher raises. The operation of the batch raises the first three, with the
// key of the batch and a [Batch] as payload: see [Batches].
const (
	// SignalFlushed: all items of a batch were flushed.
	SignalFlushed = "batch.flushed"
	// SignalFailed: some items of a batch were not flushed.
	SignalFailed = "batch.failed"
	// SignalBisected: the flush of a batch failed, and its halves are flushed now.
	SignalBisected = "batch.bisected"
	// SignalDropped is raised on the sink, with the batcher's name as key, when a new item
	// drops an old one, and the new item before it dropped none.
	SignalDropped = "batch.dropped"
)

// Batches are SignalFlushed, SignalFailed and SignalBisected, with their payload.
var Batches = signals.NewFamily[Batch]("batch.flushed,batch.failed,batch.bisected")

// ValueBatch is the name of the value in which the operation of a batch stores its [Batch],
// for Lookup and Operations; see [core.Value].
const ValueBatch = "batch"

// A Batch describes a batch whose flush has ended. In [SignalBisected] the flush is still going on.
type Batch struct {
	Items    int           `json:"items"`    // when the flush began
	Bytes    int           `json:"bytes"`    // sum of SizeOf of these items
	Reason   string        `json:"reason"`   // why it was flushed: size, bytes, delay, deadline, room or flush; the first of these
	Waited   time.Duration `json:"waited"`   // time from the first item to the begin of the flush
	Duration time.Duration `json:"duration"` // sum of the times of all calls
	Calls    int           `json:"calls"`    // calls of the function; more than one only with Bisect
	Failed   int           `json:"failed"`   // items that were not flushed
	Err      error         `json:"-"`        // why items failed; if it is [ItemErrors], with an error or nil for each of Items
}

// Why batches are flushed: see [Batch].
const (
	reasonSize     = "size"     // it had MaxSize items
	reasonBytes    = "bytes"    // it had MaxBytes bytes, or the next item would have exceeded them
	reasonDelay    = "delay"    // MaxDelay had passed
	reasonDeadline = "deadline" // it was halfway to the deadline of the context of a Do
	reasonRoom     = "room"     // there was no room in the queue for a new item
	reasonFlush    = "flush"    // Flush, Complete, Drain or WaitIdle was called
)
