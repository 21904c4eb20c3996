// This file decides what the methods that end work mean.

package core

import "context"

// Lifecycle has the methods that shut down something that accepts work, such as a
// coordinator. They mean the same in the whole library. All methods may be called many
// times, from many goroutines, and from inside a body.
type Lifecycle interface {
	// Complete ends the intake: no more items are accepted. Accepted items still run.
	Complete()
	// Flush waits until all that has been accepted so far is finished, while the intake
	// stays open. If ctx ends first, Flush returns the cause of ctx. Inside a body it
	// returns ErrWouldDeadlock.
	Flush(ctx context.Context) error
	// Drain calls Complete, and then waits until all that was accepted is finished. If
	// ctx ends first, Drain returns the cause of ctx, and the intake stays closed. Inside
	// a body it returns ErrWouldDeadlock and changes nothing.
	Drain(ctx context.Context) error
	// Stop ends the intake, cancels what has not started, and waits until what runs is
	// finished. If ctx ends first, Stop returns the cause of ctx. Inside a body it
	// returns ErrWouldDeadlock and changes nothing.
	Stop(ctx context.Context) error
	// Close ends the intake, cancels what runs and what has not started, and waits for
	// the bodies to return. Inside a body or a handler it does not wait. It returns nil.
	Close() error
}
