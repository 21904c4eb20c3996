package batching

import "time"

// Stats are the counters of a batcher, read as one cut, so that at every instant
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled + Dropped
//	Batches = BySize + ByBytes + ByDelay + ByDeadline + ByRoom + ByFlush
type Stats struct {
	// What became of the items that were accepted, by Enqueue, TryEnqueue and Do.
	Enqueued  uint64 `json:"enqueued"`
	Succeeded uint64 `json:"succeeded"` // were flushed
	Failed    uint64 `json:"failed"`    // were not, because the flush failed
	Cancelled uint64 `json:"cancelled"` // their Do left before, or their batch was cancelled
	Dropped   uint64 `json:"dropped"`   // made room for newer ones
	Pending   int    `json:"pending"`   // wait to be flushed
	Running   int    `json:"running"`   // are being flushed

	Rejected     uint64 `json:"rejected"`     // items that were never accepted
	PendingBytes int    `json:"pendingBytes"` // of the items that wait

	// Batches whose flush has begun, and why it began when it did.
	Batches    uint64 `json:"batches"`
	BySize     uint64 `json:"bySize"`
	ByBytes    uint64 `json:"byBytes"`
	ByDelay    uint64 `json:"byDelay"`
	ByDeadline uint64 `json:"byDeadline"`
	ByRoom     uint64 `json:"byRoom"`
	ByFlush    uint64 `json:"byFlush"`
	Bisected   uint64 `json:"bisected"` // of all these
	Calls      uint64 `json:"calls"`    // of the function; more than Batches only with Bisect

	// Margin is how long before the deadline of a Do its batch is flushed, as of
	// now; 0 if deadlines are not heeded, or not known before the first flush.
	Margin time.Duration `json:"margin"`
	Closed bool          `json:"closed"` // takes no more items
}

func (s *Stats) count(r Reason) {
	s.Batches++
	switch r {
	case ReasonSize:
		s.BySize++
	case ReasonBytes:
		s.ByBytes++
	case ReasonDelay:
		s.ByDelay++
	case ReasonDeadline:
		s.ByDeadline++
	case ReasonRoom:
		s.ByRoom++
	case ReasonFlush:
		s.ByFlush++
	}
}
