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
// The workers of a wave run at the same time. [Options.MaxPerWave] and [Options.PerWave] limit
// their number. Waves run one after the other, the lowest number first. All workers get the
// same input. No worker gets the result of another.
//
// # The end of an execution
//
// An execution has one [Outcome]. Normally it ends when all waves were run. Then it is completed if
// at least one worker has completed. Otherwise it has failed, with [ErrFailed].
//
// An execution ends early when a value is decisive ([Options.EarlyExit]), when
// [Options.TotalTimeout] has passed, or when it is cancelled. Then the contexts of the running
// workers end at once, the other workers are not started, and the [Result] has the values so far.
//
// A worker has failed if it has returned an error, has panicked, or has taken longer than
// [Options.WorkerTimeout]. The failure of a worker does not end the execution. If a worker
// returns after its context has ended, its value is dropped.
//
// A worker should return when its context ends. The execution waits for that, at most
// [Options.Grace]. Then it abandons the run of the worker and goes on without it, because Go cannot
// stop a goroutine from outside. The result lists an abandoned run, a signal reports it, and
// [Orchestrator.Runs] shows it until it has returned. An abandoned run that took longer than
// [Options.WorkerTimeout] is a failure. So the breaker skips a worker whose runs do not return.
//
// # Breakers
//
// Each worker has a breaker ([breaker.Breaker]) for all executions. It opens after
// [Options.BreakerThreshold] failures in a row. Then the worker is skipped for
// [Options.BreakerReset]. After that, one execution runs the worker as a probe, and the others
// still skip it. If the probe completes, the breaker closes. If the probe fails, the breaker opens
// again. A cancelled run is no success and no failure. If the probe was cancelled, the next
// execution probes. [Orchestrator.Workers] shows the breakers.
//
// # What can be observed
//
// An orchestrator implements [core.Inspector] and [inspect.Actions] for its executions: each execution
// is an operation. Each run of a worker is an operation too, which [Orchestrator.Runs] shows. So
// workers may store values and raise signals through [core.OperationFrom].
//
// The signals of an orchestrator are the constants of this package, from [SignalStarted] to
// [SignalBreakerClosed]. They leave the sink at the latest when their operation is not shown any
// more. While a breaker is open, its signal stays on the sink. So a coordinator can wait until the
// breaker is not open any more:
//
//	core.Options{DeferOn: "circuit.opened:model:*"}
//
// In package [github.com/ephemeralgo/ephemeral/core/waves], signals start the stages. Here an
// execution is a call, and returns a result. The early exit ends one execution. To let a signal
// end all of them, and the intake, use package [github.com/ephemeralgo/ephemeral/core/earlyexit]:
//
//	earlyexit.On(checks, "verdict.*")
//
// # Shutting down
//
// Drain waits for all accepted executions. Stop cancels the executions that have not begun, and
// waits for the others. Close cancels all executions. All three also wait for abandoned runs, but
// Drain and Stop only until their ctx ends.
package waveorchestrator
