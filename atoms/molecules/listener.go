package molecules

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// listener is what a Runner and a Trigger share: the control of a coordinator, and the
// subscriptions that give it work.
type listener struct {
	core.Control
	cancels []func() // each ends a subscription, and may be called many times
}

// Complete ends the subscriptions: signals start nothing any more. What waits in the
// queue still runs.
func (l *listener) Complete() {
	l.stopListening()
	l.Control.Complete()
}

// Drain is Complete, and then waits until all runs or calls are finished. When ctx ends
// first, Drain returns its cause and the rest goes on. From inside a run or a call it
// returns [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Drain(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Flush(ctx)
}

// Stop ends the subscriptions, cancels what waits in the queue, with the cause
// [core.ErrStopped], and waits until everything that has begun is finished. When ctx
// ends first, Stop returns its cause and the rest goes on. From inside a run or a call
// it returns [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Stop(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Control.Stop(ctx)
}

// Close ends the subscriptions, cancels what has begun, with the cause [core.ErrClosed],
// and what waits in the queue, and returns when all functions have returned, those that
// compensate included. From inside a run, a call or a handler it does not wait. It
// returns nil.
func (l *listener) Close() error {
	l.stopListening()
	return l.Control.Close()
}

func (l *listener) stopListening() {
	for _, cancel := range l.cancels {
		cancel()
	}
}

// ignores reports whether s must not start anything, so that a pattern such as "*" comes
// to rest: the coordinator, or one of its operations without naming a cause, has raised
// it, or every operation raises it while somebody listens.
func (l *listener) ignores(s core.Signal) bool {
	return s.Name == core.SignalStarted || s.Name == core.SignalStopped || s.Depth() == 0 && l.Raised(s)
}
