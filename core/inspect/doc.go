// Package inspect has what status pages show and control besides coordinators: queues in a
// store, and schedules. A page takes them through the interfaces [StoredQueue] and
// [Schedules], so it knows no store and no scheduler:
//
//	page, err := statuspage.New(statuspage.Options{
//		Queues:    []inspect.StoredQueue{mails.Inspect()}, // a durable.Queue
//		Schedules: []inspect.Schedules{nightly},           // a scheduledtasks.Scheduler
//	})
//
// [Actions] is what a person does with a coordinator. A type is a coordinator to look at if
// it is a [core.Inspector], and one to change if it is Actions as well.
//
// Implement these interfaces to show a queue or a scheduler of your own. Their methods are
// called by several goroutines at once.
package inspect
