package waveorchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Outcome says how an execution has ended.
type Outcome string

const (
	// OutcomeCompleted: all waves were run, and at least one worker has completed.
	OutcomeCompleted Outcome = "completed"
	// OutcomeEarlyExit: a result was decisive, see [Options.EarlyExit].
	OutcomeEarlyExit Outcome = "early-exit"
	// OutcomeTimedOut: [Options.TotalTimeout] has passed.
	OutcomeTimedOut Outcome = "timed-out"
	// OutcomeFailed: all waves were run, and every worker has failed or was skipped.
	OutcomeFailed Outcome = "failed"
	// OutcomeCancelled: the context of Execute has ended, or Cancel or Close was called. Other
	// reasons: the execution was not accepted, Stop was called before it began,
	// [Options.EarlyExit] panicked, or a handler ended the goroutine.
	OutcomeCancelled Outcome = "cancelled"
)

// A Result is the outcome of an execution, with the results of all workers. Each worker is
// in exactly one of Completed, Failed, Cancelled and Skipped. These lists are in the order
// of wave, priority and name.
type Result[Out any] struct {
	Outcome  Outcome
	Decisive *WorkerResult[Out] // the result that led to an early exit; nil without one

	// Completed are the workers that returned a value in time, the decisive one
	// included.
	Completed []WorkerResult[Out]
	// Failed are the workers that returned an error, panicked, or took longer than
	// [Options.WorkerTimeout]. Only these count as failures for the breaker.
	Failed []WorkerResult[Out]
	// Cancelled are the workers that were running when the execution ended early.
	Cancelled []WorkerResult[Out]
	// Skipped are the workers that were not run. Err says why: the breaker is open, or the
	// execution or the time of the worker was over before it could begin.
	Skipped []WorkerResult[Out]
	// Abandoned are the workers of Failed and Cancelled that did not return within
	// [Options.Grace] after the end of their context. They may still be running.
	Abandoned []WorkerResult[Out]

	Duration time.Duration
}

// A WorkerResult is the result of one worker in one execution.
type WorkerResult[Out any] struct {
	Worker    string
	Wave      int
	Operation core.OperationID // the run, see [Orchestrator.Runs]; 0 if there was none
	Duration  time.Duration    // time from its start until it returned or was abandoned
	Value     Out              // zero unless the worker has completed
	Err       error            // why it failed, was cancelled or skipped; nil if it has completed
}

// The errors of executions and workers. Compare with [errors.Is]. ErrTimeout and ErrWorkerTimeout
// also match [context.DeadlineExceeded]. These two and ErrEarlyExit are also causes of contexts.
var (
	// ErrTimeout: the execution took longer than [Options.TotalTimeout].
	ErrTimeout error = &timeoutError{"waveorchestrator: the execution took longer than Options.TotalTimeout"}
	// ErrWorkerTimeout: the worker took longer than [Options.WorkerTimeout].
	ErrWorkerTimeout error = &timeoutError{"waveorchestrator: the worker took longer than Options.WorkerTimeout"}
	// ErrFailed: no worker has completed; see the errors in the [Result].
	ErrFailed = errors.New("waveorchestrator: no worker has completed; the result says why")
	// ErrEarlyExit: the result of another worker was decisive.
	ErrEarlyExit = errors.New("waveorchestrator: early exit")
	// ErrBreakerOpen: the breaker of the worker is open, or another execution is probing
	// it.
	ErrBreakerOpen = errors.New("waveorchestrator: the breaker is open")
)

type timeoutError struct{ text string }

func (e *timeoutError) Error() string   { return e.text }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Is(t error) bool { return t == context.DeadlineExceeded }
