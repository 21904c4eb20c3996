// Package waveorchestrator asks several workers about one input, the cheap ones first, and
// stops when a result is decisive.
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
// The workers of a wave run at the same time; [Options.MaxPerWave] and [Options.PerWave] limit
// their number. Waves run one after the other, the lowest number first. All workers get the
// same input. No worker gets the result of another.
//
// # The end of an execution
//
// An execution has one [Outcome]. It ends when all waves were run. If at least one worker has
// completed, it is completed. Otherwise it has failed, with [ErrFailed]. It ends early when a
// value is decisive ([Options.EarlyExit]), when [Options.TotalTimeout] has passed, or when it
// is cancelled. Then the contexts of the running workers end at once, the other workers are
// not started, and the [Result] has the values so far.
//
// A worker has failed if it has returned an error, has panicked, or has taken longer than
// [Options.WorkerTimeout]. The failure of a worker does not end the execution. If a worker
// returns after its context has ended, its value is dropped.
//
// A worker should return when its context ends. The execution waits [Options.Grace] for it.
// Then it abandons the worker and goes on or returns without it: Go cannot stop a goroutine
// from outside. The result lists an abandoned run, Counters count it, and a signal reports it.
// While [Options.MaxAbandoned] runs of one worker are still running, that worker is skipped.
//
// # Breakers
//
// Each worker has a breaker ([breaker.Breaker]), which all executions share. It opens after
// [Options.BreakerThreshold] failures in a row. Then the worker is skipped for
// [Options.BreakerReset]. After that one execution runs it as a probe, and the others still
// skip it. The breaker closes if the probe completes, and opens again if it fails. A cancelled
// run counts as no success and no failure: the caller, Cancel, an early exit, the total
// timeout or Close can cancel it. If it was the probe, the next execution probes.
// [Orchestrator.Workers] shows the breakers.
//
// # What can be observed
//
// An orchestrator is a [core.Inspector] and a [core.Controller] whose operations are the
// executions. [Orchestrator.Runs] is a coordinator as well: the runs of workers are its
// operations. So workers may leave values and raise signals through [core.OperationFrom].
// [Orchestrator.Counters] counts by outcome.
//
// The signals of an orchestrator are the constants of this package, from [SignalStarted] to
// [SignalBreakerClosed]. They stay on the sink while the operation is shown. While a breaker
// is open, its signal stays on the sink, so others can wait for the end of it:
//
//	core.Options{DeferOn: "circuit.opened:model:*"}
//
// Package [github.com/ephemeralgo/ephemeral/core/waves] is something else: there signals
// set off stages. Here an execution is a call, and returns a result.
//
// # Shutting down
//
// Drain waits for all accepted executions. Stop cancels those that have not begun and waits
// for the others. Both also wait for abandoned workers, until their context ends. Close first
// cancels all executions.
package waveorchestrator
