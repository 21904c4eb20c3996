// Package inspect has what status pages show and control besides coordinators: queues in a
// store, schedules, and who waits for whom. A page takes the first two through the interfaces
// [StoredQueue] and [Schedules], so it knows no store and no scheduler:
//
//	page, err := statuspage.New(statuspage.Options{
//		Queues:    []inspect.StoredQueue{mails.Inspect()}, // a durable.Queue
//		Schedules: []inspect.Schedules{nightly},           // a scheduledtasks.Scheduler
//	})
//
// [Waits] returns a graph: which operation waits for which, also in other coordinators. It finds
// cycles. [Busy] lists, as texts, the operations of one coordinator that have not ended, and why.
//
// [Actions] is what a person does with a coordinator. A page shows each [core.Inspector],
// and can change those that implement Actions as well.
//
// Implement these interfaces to show your own queue or scheduler. Their methods are called
// by several goroutines at once.
package inspect
