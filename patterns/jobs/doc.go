// Package jobs runs declared jobs. A job is a handler with the signals that start it. A set of
// jobs is a slice of values, so it can be printed, drawn ([Mermaid]) and checked once, by
// [New]; the compiler checks the types of payloads and keys.
//
//	runner, err := jobs.New(sink, []jobs.Job{
//		jobs.OnKind(FileSaved, makeThumbnail, jobs.Options{
//			Name: "thumbnail", MaxConcurrency: 4, MaxRetries: 3, EmitOnComplete: "thumbnail.done",
//		}),
//		jobs.On("thumbnail.done", notify, jobs.Options{Name: "notify", Key: jobs.SignalKey}),
//	}, core.Options{MaxConcurrency: 16})
//
// Each signal that starts a job becomes a [Run], an operation of one coordinator, the
// [Runner]. So all limits hold together: that of the runner, of lanes ([Options].Lane), of the
// job ([Options].MaxConcurrency), and one run at a time for each key.
//
// # The life of a run
//
//	signal -> accepted -> awaits signals -> pending -> attempt 1 -> pause -> attempt 2 -> ... -> end
//	   |                                                  |                      |
//	   +-> job.rejected                                   +-> job.retry          +-> job.failed
//
// Signals from before New start nothing. The code that raises a signal never waits: if the
// queue is full, the run is rejected.
//
// A run that awaits signals has no slot and no place in the order of its key. It gets its
// place when all signals have come. If they come for several runs at once, the run that was
// accepted first is first. In a pause between attempts a run has no slot and does not count
// for limits. But it holds its key, so no later run of the key overtakes it.
//
// The signals that a run raises through its operation have the trigger as their cause. So the
// next jobs find the operation that started them ([core.Control.Lookup]), and
// [core.Propagation] ends cycles. A job that would set itself off with a name that it is
// declared to raise is an error of New.
//
// A panic of a handler ends its run without a retry. A job of [Failed] is a dead-letter queue:
// its payload has the trigger and the error, and can raise the trigger again ([Run.Raise]).
//
// # Middleware
//
// A job and a Dispatcher have the same type of handler, [core.Handler]. Middleware that wraps
// it runs once for each attempt and returns before the signals of completion: open and close a
// transaction there.
package jobs
