// Package waveorchestrator asks several workers about one input, the cheap ones
// first, and stops when it knows enough.
//
//	checks, err := waveorchestrator.New([]waveorchestrator.Worker[Request, Score]{
//		{Name: "agent", Wave: 0, Do: checkAgent},
//		{Name: "headers", Wave: 0, Do: checkHeaders},
//		{Name: "reputation", Wave: 1, Do: askReputation},
//		{Name: "model", Wave: 2, Do: askModel},
//	}, waveorchestrator.Options[Score]{
//		EarlyExit: func(s Score) bool { return s > 0.95 || s < 0.05 },
//	})
//	...
//	result, err := checks.Execute(ctx, request)
//
// Workers of a wave run side by side, so many at once as [Options.MaxPerWave] and
// [Options.PerWave] allow; waves run one after the other, lowest number first. All
// get the same input: what one finds out does not go to the next.
//
// # The end of an execution
//
// An execution has one [Outcome]. All waves were gone through; or a value was
// decisive, by [Options.EarlyExit], which is asked about each value as it comes; or
// the time was over; or somebody did not want it any more. In the last three cases
// the contexts of the workers that run end at once, later ones are not started, and
// the [Result] has what there is.
//
// A worker that fails does not end anything. It has failed if it has returned an
// error or panicked, or taken longer than [Options.WorkerTimeout]. What a worker
// returns when its context has ended is too late and is dropped.
//
// A worker should return when its context ends. It is given [Options.Grace] to do
// so; then the execution abandons it and goes on, or returns, without it. Nothing
// can end a goroutine from outside, so an abandoned run is listed in the result,
// counted, and signalled, and when [Options.MaxAbandoned] of one worker are still
// running, that worker is skipped.
//
// # Breakers
//
// Each worker has a breaker, which is common to all executions. After
// [Options.BreakerThreshold] failures in a row it opens, and the worker is skipped
// for [Options.BreakerReset]. Then one execution runs it, while others still skip
// it: if it completes, the breaker closes, if it fails, it opens again. A run that
// was cancelled, by the caller, Cancel, an early exit, the total timeout or Close,
// shows nothing, neither good nor bad; if it was the probe, the next execution may
// probe. [Orchestrator.Workers] shows the breakers.
//
// # What is to be seen
//
// Executions and the runs of workers are operations ([Orchestrator.Operations]), so
// workers may leave values and raise signals through [core.OperationFrom]. They
// raise the signals of the constants of this package, from [SignalStarted] to
// [SignalCompleted]; these stay on the sink as long as the operation is shown. That
// a breaker is open is held, so that others can wait for its end:
//
//	core.Options{DeferOn: "circuit.opened:model:*"}
//
// [Orchestrator.Stats] counts everything.
//
// Package [github.com/ephemeralgo/ephemeral/core/waves] is something else: stages
// that are set off by signals. Here an execution is a call, and has a result.
package waveorchestrator
