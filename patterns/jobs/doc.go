// Package jobs runs handlers when signals come, with limits, keys and retries that are declared in
// one list. A job is a handler with the signals that start it. A set of jobs is a slice of values.
// You can print it, [Mermaid] can draw it, and [New] checks it. The compiler checks the types of
// payloads and keys.
//
//	runner, err := jobs.New(sink, []jobs.Job{
//		jobs.OnKind(FileSaved, makeThumbnail, jobs.Options{
//			Name: "thumbnail", MaxConcurrency: 4, MaxRetries: 3, EmitOnComplete: "thumbnail.done",
//		}),
//		jobs.On("thumbnail.done", notify, jobs.Options{Name: "notify", Key: jobs.SignalKey}),
//	}, core.Options{MaxConcurrency: 16})
//
// Each signal that starts a job becomes a [Run]: an operation of the [Runner], which is a
// coordinator. The signal is the trigger of the run. All limits apply at the same time: the limits
// of the runner, of the lane ([Options.Lane]) and of the job ([Options.MaxConcurrency]), and one
// run at a time for each key.
//
// # The life of a run
//
//	signal -> accepted -> awaits signals -> pending -> attempt 1 -> pause -> attempt 2 -> ... -> end
//	   |                                                  |                      |
//	   +-> job.rejected                                   +-> job.retry          +-> job.failed
//
// Signals that were raised before New start nothing. The code that raises a signal never waits:
// if the queue is full, the run is rejected.
//
// A run can await further signals ([Options.Await]). Until all of them have come, it has no slot,
// and later runs of its key can overtake it. If one signal ends the waiting of several runs, they
// go on in the order in which they were accepted. In a pause between attempts a run has no slot,
// but it holds its key, so no later run of the key overtakes it.
//
// The signals that a run raises through its operation have the trigger as their cause. So the
// next job can find the operation that started it ([core.Control.Lookup]), and [signals.Propagation]
// ends cycles. If a job is declared to raise a name that starts the same job, New returns an
// error.
//
// If a handler panics, its run ends without a retry. A job on [Failed] is a dead-letter queue. Its
// payload has the error and the failed run, and [Run.Raise] raises the trigger again.
//
// # Middleware
//
// A job and a [core.Dispatcher] have the same type of handler, [core.Handler]. Middleware that
// wraps the handler runs once for each attempt. It returns before the run raises EmitOnComplete or
// EmitOnFailure. So it is the place to begin and commit a transaction.
package jobs
