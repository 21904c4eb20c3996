// Package waves runs stages that are set off by signals: what one stage says when
// it is done sets off the next, wave after wave, until one of them comes to a
// conclusion that ends it all.
//
//	bots, err := waves.New(sink, []waves.Stage{
//		{Name: "lexical", Trigger: "content.received", Work: lexical, OnComplete: "vote.lexical"},
//		{Name: "behavior", Trigger: "content.received", Work: behavior, OnComplete: "vote.behavior"},
//		{Name: "judge", Trigger: "vote.*", Work: judge},
//	}, waves.Options{EarlyExit: "verdict.*"})
//	...
//	defer bots.Close()
//	bots.Start()
//	sink.RaiseKey("content.received", "user-123")
//
// Every signal that matches the trigger of a stage queues one run of it; one that
// matches several queues one of each, in the order of the stages. The work gets
// the signal. Whoever raised it does not wait. As many runs as may go at once do
// so, the others wait in a queue, and when that is full the oldest is dropped and
// counted.
//
// A run raises the signals of [Stage.OnStart], and of [Stage.OnComplete] or
// [Stage.OnFailure], with the key of its trigger and because of it
// ([core.Sink.Because]). So what set off what can be seen ([core.Signal.Path]),
// and stages that set each other off in a circle are stopped by the sink's rules
// of [core.Propagation].
//
// A stage may have a trigger as wide as "*" without setting itself off for ever:
//
//   - The signals that the executor raises for a run do not set off the stage
//     that ran.
//   - Those that the work raises through its operation, and its coordinator about
//     it, set off nothing, unless they are raised because of another signal.
//   - [core.SignalStarted] and [core.SignalStopped] set off nothing and end
//     nothing, whoever raises them.
//
// So work that wants to set off other stages names its trigger as the cause, as in
// sink.Because(trigger).RaiseKey("verdict.bot", trigger.Key). Work that raises on
// the sink without a cause cannot be told from anybody else.
//
// A signal that matches [Options.EarlyExit] ends everything: what runs is
// cancelled with an [ExitError] as the cause, what is queued is discarded without
// a trace but for the count, and [SignalExit] is raised. The executor is done
// then; [Executor.Exited] says so. For the next use make a new one, which costs
// next to nothing: so a verdict about one thing never ends the work on another.
package waves
