package batching

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Counters count the items of a batcher, all read at the same moment, at which
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled + Dropped
type Counters struct {
	// What became of the items that were accepted, by Enqueue, TryEnqueue and Do.
	Enqueued  uint64 `json:"enqueued"`
	Succeeded uint64 `json:"succeeded"` // were flushed
	Failed    uint64 `json:"failed"`    // were not, because the flush failed
	Cancelled uint64 `json:"cancelled"` // their Do returned early, or their batch was cancelled, or Stop or Close came first
	Dropped   uint64 `json:"dropped"`   // made room for newer ones
	Pending   int    `json:"pending"`   // wait to be flushed
	Running   int    `json:"running"`   // are being flushed

	Rejected     uint64 `json:"rejected"`     // items that were never accepted
	PendingBytes int    `json:"pendingBytes"` // bytes of the pending items

	Batches  uint64 `json:"batches"`  // batches whose flush has begun
	Bisected uint64 `json:"bisected"` // of these, how many failed and were split
	Calls    uint64 `json:"calls"`    // calls of the function; more than Batches only with Bisect

	Closed bool `json:"closed"` // takes no more items
}

// LogValue groups the counters by their JSON names.
func (c Counters) LogValue() slog.Value { return core.StatsValue(c) }

// String is the JSON form.
func (c Counters) String() string { return core.StatsString(c) }
