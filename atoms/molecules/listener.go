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

// Complete ends the subscriptions: signals start no more runs or calls. Those in the queue
// still run.
func (l *listener) Complete() {
	l.stopListening()
	l.Control.Complete()
}

// Drain is Complete, and waits until all runs or calls are finished. If ctx ends first, Drain
// returns the cause, and they go on. If Drain is called from a run or a call, it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Drain(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Flush(ctx)
}

// Stop ends the subscriptions, cancels the runs or calls in the queue, with the cause
// [core.ErrStopped], and waits until the running ones are finished. If ctx ends first, Stop
// returns the cause, and they go on. If Stop is called from a run or a call, it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Stop(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Control.Stop(ctx)
}

// Close ends the subscriptions and cancels all running and queued runs or calls, with the
// cause [core.ErrClosed]. It waits until all functions have returned, including Compensate
// functions. If it is called from a run, a call or a handler, it does not wait. It returns
// nil.
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
