package molecules

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// listener is the common part of a Runner and a Trigger: the control of a coordinator, and the
// subscriptions that give work to the coordinator.
type listener struct {
	core.Control
	cancels []func() // each ends a subscription, and may be called many times
}

// Complete ends the subscriptions: signals start no more runs or calls. Runs and calls in the
// queue are still done.
func (l *listener) Complete() {
	l.stopListening()
	l.Control.Complete()
}

// Drain calls Complete and waits until all runs or calls are finished. If ctx ends first, Drain
// returns the cause of ctx, and the runs or calls go on. If Drain is called from a run or a call,
// it returns [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Drain(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Flush(ctx)
}

// Stop ends the subscriptions, and cancels the runs or calls in the queue with the cause
// [core.ErrStopped]. It waits until the running ones are finished. If ctx ends first, Stop
// returns the cause of ctx, and the running ones go on. If Stop is called from a run or a call,
// it returns [core.ErrWouldDeadlock] and changes nothing.
func (l *listener) Stop(ctx context.Context) error {
	if l.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	l.Complete()
	return l.Control.Stop(ctx)
}

// Close ends the subscriptions, and cancels all running and queued runs or calls with the
// cause [core.ErrClosed]. It waits until all functions have returned, including Compensate
// functions. If it is called from a run, a call or a handler, it does not wait. It always
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

// ignores reports whether s must start nothing, because a pattern such as "*" would cause an
// endless loop. Two kinds of signals are ignored: signals that every operation of any
// coordinator raises, and signals that this coordinator, or one of its operations, raises
// without a cause.
func (l *listener) ignores(s signals.Signal) bool {
	if s.Name == signals.SignalStarted || s.Name == signals.SignalStopped {
		return true
	}
	if s.Depth() > 0 || s.Source != l.Name() {
		return false
	}
	_, own := l.Lookup(s.Operation)
	return own
}
