// Package waves runs stages that signals start: the end of one stage starts the next, until a
// signal ends everything.
//
//	bots, err := waves.New([]waves.Stage{
//		{Name: "lexical", Trigger: "content.received", Work: lexical, OnComplete: "vote.lexical"},
//		{Name: "behavior", Trigger: "content.received", Work: behavior, OnComplete: "vote.behavior"},
//		{Name: "judge", Trigger: "vote.*", Work: judge},
//	}, "verdict.*", core.Options{Sink: sink})
//	...
//	defer bots.Close()
//	bots.Start()
//	sink.RaiseKey("content.received", "user-123")
//
// Every signal that matches the trigger of a stage queues one run of that stage. A signal
// that matches several triggers queues one run of each stage, in the order of the stages.
// The work gets the signal. The goroutine that raises the signal does not wait. At most
// [core.Options.MaxConcurrency] runs go at once, the others wait in a queue. When the queue is
// full, the oldest run is dropped and counted.
//
// A run raises the signals of [Stage.OnStart], and of [Stage.OnComplete] or
// [Stage.OnFailure], with the key of its trigger and because of it
// ([signals.Sink.Because]). So [signals.Signal.Path] shows which signal started which stage,
// and the sink's rules of [signals.Propagation] stop stages that start each other in a
// circle.
//
// A stage may have a trigger as wide as "*". It does not start itself for ever:
//
//   - The signals that the executor raises for a run do not start the stage of that run.
//   - The signals that the work raises through its operation, and signals that the
//     coordinator raises about it, start nothing, unless another signal is their cause.
//   - [signals.SignalStarted] and [signals.SignalStopped] start nothing and end nothing,
//     whichever coordinator raises them.
//
// So work that starts other stages names its trigger as the cause, as in
// sink.Because(trigger).RaiseKey("verdict.bot", trigger.Key). Signals that the work raises
// on the sink without a cause start stages like any other signals.
//
// A signal that matches the pattern of the early exit ends everything, see [earlyexit.Exit]:
// runs that have started are cancelled, queued runs are only counted as Cancelled. Then the
// executor is done; [Executor.Exited] returns the signal. Make a new executor for the next
// use, which costs little. So a verdict about one thing never ends the work on another.
//
// Use waveorchestrator, in the atoms, if the waves are known in advance and a call has to
// return their results.
package waves
