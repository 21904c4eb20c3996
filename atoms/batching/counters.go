package batching

// Counters count the items of a batcher. They are read at one moment, at which
//
//	Enqueued = Pending + Running + Succeeded + Failed + Cancelled + Dropped
type Counters struct {
	Enqueued  uint64 `json:"enqueued"`  // items that Enqueue, TryEnqueue and Do accepted
	Succeeded uint64 `json:"succeeded"` // items that were flushed
	Failed    uint64 `json:"failed"`    // items whose flush failed
	Cancelled uint64 `json:"cancelled"` // items that left before their flush, or whose batch was cancelled, for example by Stop or Close
	Dropped   uint64 `json:"dropped"`   // items that made room for newer ones
	Pending   int    `json:"pending"`   // items that wait to be flushed
	Running   int    `json:"running"`   // items that are being flushed

	Rejected     uint64 `json:"rejected"`     // items that were never accepted
	PendingBytes int    `json:"pendingBytes"` // bytes of the pending items

	Batches  uint64 `json:"batches"`  // batches whose flush has begun
	Bisected uint64 `json:"bisected"` // batches that failed and were split
	Calls    uint64 `json:"calls"`    // calls of the function; more than Batches only with Bisect

	Closed bool `json:"closed"` // the batcher accepts no more items
}
