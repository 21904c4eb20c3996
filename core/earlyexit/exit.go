package earlyexit

import (
	"fmt"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An Exit is the only mechanism by which a signal ends work. A Collector and the executor of core/waves have one, and
// no lifecycle of their own: Control.OnClosed ends their subscriptions. The orchestrator of atoms/waveorchestrator has
// its own end of an execution: it runs waves of workers for each call, which a value, a timeout or the caller ends, and
// no signal has a part in that. Rejected: an executor below the orchestrator, because a wave would start by a signal that
// becomes an item, and the queue of an executor drops the oldest. An exit for each execution: a coordinator for each call.

// SignalExited is raised on the sink of a coordinator that an [Exit] has ended, after its
// operations have been cancelled. It has the key of the signal that ended the coordinator,
// and is caused by it.
const SignalExited = "coordinator.exited"

// An ExitedError names the signal that ended a coordinator. It is the cause with which the
// operations are cancelled. It is a [core.ErrClosed].
type ExitedError struct{ Signal signals.Signal }

func (e *ExitedError) Error() string {
	return fmt.Sprintf("earlyexit: ended by signal %q", e.Signal.Name)
}

// Unwrap returns [core.ErrClosed].
func (e *ExitedError) Unwrap() error { return core.ErrClosed }

// A Target is what an [Exit] can end: a coordinator, or another type that embeds a
// [core.Control].
type Target interface {
	Sink() *signals.Sink
	Complete()
	Abort(cause error)
	OnClosed(fn func()) (cancel func())
}

// An Exit ends a coordinator when a signal comes. It ends the intake, cancels all
// operations, with an [ExitedError] as the cause, and raises [SignalExited]. Make one with
// [On]. An Exit needs no closing: it listens until the coordinator ends. It is safe for
// concurrent use.
type Exit struct {
	target Target
	taken  atomic.Pointer[ExitedError] // nil: no signal has come
}

// On lets the first signal that matches pattern end the target; see [signals.Match]. The
// signal comes from the sink of the target, after this call. When the Raise of the signal
// returns, nothing starts any more. The signal has no effect after Close has begun, or after
// the intake has ended and all accepted items are done. [signals.SignalStarted] and
// [signals.SignalStopped] do not count, as for the gates of coordinators.
//
//ephemeral:pattern {pattern}
func On(target Target, pattern string) *Exit {
	x := &Exit{target: target}
	target.OnClosed(target.Sink().Subscribe(pattern, x.take))
	return x
}

// take is the handler of the signals.
func (x *Exit) take(s signals.Signal) {
	exited := &ExitedError{s}
	if s.Name == signals.SignalStarted || s.Name == signals.SignalStopped || !x.taken.CompareAndSwap(nil, exited) {
		return
	}
	x.target.Complete()
	x.target.Abort(exited)
	x.target.Sink().Because(s).RaiseKey(SignalExited, s.Key)
}

// Signal returns the signal that ended the coordinator, and whether there was one.
func (x *Exit) Signal() (signals.Signal, bool) {
	if exited := x.taken.Load(); exited != nil {
		return exited.Signal, true
	}
	return signals.Signal{}, false
}
