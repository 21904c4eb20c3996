package core

import (
	"errors"
	"fmt"
)

// The errors a coordinator answers with. Use [errors.Is].
var (
	// ErrClosed is returned by every late call, and is the cause of a
	// cancellation by Close.
	ErrClosed = errors.New("ephemeral: coordinator is closed")
	// ErrFull is returned by TryEnqueue when MaxQueued items are waiting.
	ErrFull = errors.New("ephemeral: queue is full")
	// ErrUnknown is returned for an id that was never given out by this
	// coordinator, or whose operation has left the window.
	ErrUnknown = errors.New("ephemeral: unknown operation")
	// ErrUnknownLane is returned for items of a lane that is not among
	// [Options.Lanes].
	ErrUnknownLane = errors.New("ephemeral: unknown lane")
	// ErrWouldDeadlock is returned on an operation's goroutine, or with its
	// context, by a call that would wait for that very operation, be it by way
	// of others.
	ErrWouldDeadlock = errors.New("ephemeral: operation would wait for itself")
	// ErrDropped is the outcome of an item that made room for a newer one
	// under [Options.DropOldest].
	ErrDropped = errors.New("ephemeral: item was dropped for a newer one")
	// ErrCancelled is the cause of a cancellation that gave none.
	ErrCancelled = errors.New("ephemeral: operation was cancelled")
)

// A RefusedError says which signal, matching [Options.CancelOn], kept an item
// from being accepted or from being started.
type RefusedError struct{ Signal Signal }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("ephemeral: refused because of signal %q", e.Signal.Name)
}

// A PanicError is the outcome of an operation whose body panicked or ended its
// goroutine with [runtime.Goexit].
type PanicError struct {
	Value any    // what was passed to panic; nil for Goexit
	Stack []byte // where, as formatted by [runtime/debug.Stack]
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "ephemeral: operation ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("ephemeral: operation panicked: %v", e.Value)
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
