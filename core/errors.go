// This file decides which errors there are.

package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The errors of coordinators. Compare them with [errors.Is]: a returned error may wrap
// one of them.
var (
	// ErrClosed is returned by Enqueue, TryEnqueue, Do and Submit after the intake has ended, and is the
	// cause of a cancellation by Close. The error names the coordinator.
	ErrClosed = errors.New("core: coordinator is closed")
	// ErrFull is returned by TryEnqueue when MaxQueued items are pending, and by Enqueue if
	// DropOldest is set and there is nothing to drop. With lanes or classes, only the
	// pending items of the same lane and class are counted. The error names the coordinator.
	ErrFull = errors.New("core: queue is full")
	// ErrUnknown is returned for an id that was never given out by this coordinator, or
	// whose operation has left the window. The error says which, and names the coordinator.
	ErrUnknown = errors.New("core: unknown operation")
	// ErrUnknownLane is returned for items of a lane that is not among
	// [Options.Lanes].
	ErrUnknownLane = errors.New("core: unknown lane")
	// ErrUnknownClass is returned for items of a class that is not among
	// [Options.Classes].
	ErrUnknownClass = errors.New("core: unknown class")
	// ErrWouldDeadlock is returned by a call that would or could wait for the end of its own
	// operation: a call on the operation's goroutine, or with the operation's context. The
	// call recognises the goroutine by its stack. It does not recognise a goroutine that
	// the body has started.
	ErrWouldDeadlock = errors.New("core: operation would wait for itself")
	// ErrDropped is the error of an item that made room for a newer one
	// under [Options.DropOldest].
	ErrDropped = errors.New("core: item was dropped for a newer one")
	// ErrStopped is the error of an item that was pending when its coordinator was
	// stopped.
	ErrStopped = errors.New("core: coordinator was stopped")
	// ErrTimeout is the error of an operation that took longer than
	// [Options.Timeout]. It is a [context.DeadlineExceeded], too.
	ErrTimeout error = timeoutError{}
	// ErrCancelled is the cause if an operation is cancelled with a nil cause.
	ErrCancelled = errors.New("core: operation was cancelled")
)

// namedError is an error that names the coordinator it is about. Each coordinator makes the
// errors for refused items once, so refusing allocates nothing.
type namedError struct {
	error
	text string
}

func named(err error, coordinator, says string) error {
	return &namedError{err, fmt.Sprintf("core: coordinator %q %s", coordinator, says)}
}

func (e *namedError) Error() string { return e.text }

func (e *namedError) Unwrap() error { return e.error }

type timeoutError struct{}

func (timeoutError) Error() string { return "core: operation took longer than its timeout" }

func (timeoutError) Timeout() bool { return true }

func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A PanicError is the error of an operation whose body panicked or ended its
// goroutine with [runtime.Goexit].
type PanicError struct {
	Value any    // what was passed to panic; nil for Goexit
	Stack []byte // the stack of the panic, as formatted by [runtime/debug.Stack]
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "core: operation ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("core: operation panicked: %v", e.Value)
}

// Unwrap returns the value that was passed to panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Must returns v and panics if err is not nil. It is for constructors whose
// options are literals: core.Must(core.NewCoordinator(work, core.Options{})).
func Must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// A RefusedError has the signal that kept an item from being accepted or started. The
// signal matches [Options.CancelOn].
type RefusedError struct{ Signal signals.Signal }

func (e *RefusedError) Error() string {
	if e.Signal.Key != "" {
		return fmt.Sprintf("core: refused because of signal %q for %q", e.Signal.Name, e.Signal.Key)
	}
	return fmt.Sprintf("core: refused because of signal %q", e.Signal.Name)
}
