package waveorchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Outcome is how an execution has ended, in exactly one way.
type Outcome string

const (
	// OutcomeCompleted: all waves have been gone through.
	OutcomeCompleted Outcome = "completed"
	// OutcomeEarlyExit: a result was decisive, see [Options.EarlyExit].
	OutcomeEarlyExit Outcome = "early-exit"
	// OutcomeTimedOut: [Options.TotalTimeout] was over.
	OutcomeTimedOut Outcome = "timed-out"
	// OutcomeCancelled: the context of Execute has ended, Cancel was called, the
	// orchestrator was closed, [Options.EarlyExit] panicked, or a handler ended the
	// goroutine.
	OutcomeCancelled Outcome = "cancelled"
)

// A Result is what came of an execution, as far as it got. Each worker is in
// exactly one of Completed, Failed, Cancelled and Skipped, and these are in the
// order of wave, priority and name.
type Result[Out any] struct {
	Outcome  Outcome
	Decisive *WorkerResult[Out] // the result that led to an early exit; nil without one

	// Completed are those that returned a value in time, including the decisive
	// one.
	Completed []WorkerResult[Out]
	// Failed are those that returned an error, panicked, or took longer than
	// [Options.WorkerTimeout]. What is in here counts for the breaker, and
	// nothing else does.
	Failed []WorkerResult[Out]
	// Cancelled are those that ran when the execution ended before its time.
	Cancelled []WorkerResult[Out]
	// Skipped are those that were not run, because of their breaker or because
	// the execution had ended.
	Skipped []WorkerResult[Out]
	// Abandoned are those of Failed and Cancelled that did not return within
	// [Options.Grace] when their context had ended: they may still be running.
	Abandoned []WorkerResult[Out]

	Duration time.Duration
}

// A WorkerResult is what came of one worker in one execution.
type WorkerResult[Out any] struct {
	Worker    string
	Wave      int
	Operation core.OperationID // of the run; 0 if there was none
	Duration  time.Duration    // from its start until it returned or was abandoned
	Value     Out              // zero unless the worker has completed
	Err       error            // why it failed, was cancelled or skipped; nil if it has completed
}

// The errors that say why something has ended, or was not begun. They are also the
// causes of the contexts that ended with it. Use [errors.Is]; ErrTimeout and
// ErrWorkerTimeout are [context.DeadlineExceeded] as well.
var (
	// ErrTimeout: the execution took longer than [Options.TotalTimeout].
	ErrTimeout error = &timeoutError{"waveorchestrator: the time for the execution is over"}
	// ErrWorkerTimeout: the worker took longer than [Options.WorkerTimeout].
	ErrWorkerTimeout error = &timeoutError{"waveorchestrator: the time for the worker is over"}
	// ErrEarlyExit: the result of another worker was decisive.
	ErrEarlyExit = errors.New("waveorchestrator: early exit")
	// ErrBreakerOpen: the breaker of the worker is open, or another execution
	// is probing it.
	ErrBreakerOpen = errors.New("waveorchestrator: the breaker is open")
	// ErrStuck: [Options.MaxAbandoned] runs of the worker do not return.
	ErrStuck = errors.New("waveorchestrator: too many runs of the worker do not return")
)

type timeoutError struct{ text string }

func (e *timeoutError) Error() string   { return e.text }
func (e *timeoutError) Timeout() bool   { return true }
func (e *timeoutError) Is(t error) bool { return t == context.DeadlineExceeded }

// deadline is a timeout of one execution or one run. There may be orchestrators
// within orchestrators; by the address of the cause each knows its own.
type deadline struct{ error }

func (d *deadline) Unwrap() error { return d.error }
