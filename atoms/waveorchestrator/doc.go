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
// The workers of a wave run at the same time, as many as [Options.MaxPerWave] and
// [Options.PerWave] allow. Waves run one after the other, the lowest number first. All
// workers get the same input. What one worker returns is not given to the next.
//
// # The end of an execution
//
// An execution has one [Outcome]. It ends when all waves were run. Then it is completed if
// at least one worker has completed; otherwise it has failed, with [ErrFailed]. It ends
// early when a value is decisive ([Options.EarlyExit]), when [Options.TotalTimeout] has
// passed, or when it is cancelled. Then the contexts of the workers end at once, the
// others are not started, and the [Result] has what there is.
//
// A worker has failed if it has returned an error, has panicked, or has taken longer than
// [Options.WorkerTimeout]. The failure of a worker does not end the execution. What a
// worker returns after its context has ended is too late, and is dropped.
//
// A worker should return when its context ends. The execution waits [Options.Grace] for
// that. Then it abandons the worker and goes on, or returns, without it. Go cannot stop a
// goroutine from outside. So the result lists an abandoned run, Counters count it, and a
// signal reports it. While [Options.MaxAbandoned] runs of one worker are still running,
// that worker is skipped.
//
// # Breakers
//
// Each worker has a breaker ([breaker.Breaker]), which all executions share. It opens after
// [Options.BreakerThreshold] failures in a row. Then the worker is skipped for
// [Options.BreakerReset]. After that one execution runs it as a probe, and the others still
// skip it. The breaker closes if the probe completes, and opens again if it fails. A run
// that was cancelled, by the caller, Cancel, an early exit, the total timeout or Close,
// counts neither as a success nor as a failure; if it was the probe, the next execution
// probes. [Orchestrator.Workers] shows the breakers.
//
// # What can be observed
//
// An orchestrator is a [core.Inspector] and a [core.Controller] whose operations are the
// executions. [Orchestrator.Runs] is a coordinator as well: the runs of workers are its
// operations. So workers may leave values and raise signals through [core.OperationFrom].
// [Orchestrator.Counters] counts by outcome.
//
// The signals of an orchestrator are the constants of this package, from [SignalStarted] to
// [SignalBreakerClosed]. They stay on the sink as long as the operation is shown. That a
// breaker is open is a held fact, so that others can wait for the end of it:
//
//	core.Options{DeferOn: "circuit.opened:model:*"}
//
// Package [github.com/ephemeralgo/ephemeral/core/waves] is something else: there signals
// set off stages. Here an execution is a call, and returns a result.
//
// # Shutting down
//
// Drain lets the executions end that were accepted, Stop those that have begun. Both also wait
// for abandoned workers, by the deadline of their context. Close ends all executions first.
package waveorchestrator
