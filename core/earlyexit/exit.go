package earlyexit

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
)

// SignalExited is raised on the sink of a coordinator that an [Exit] has ended, after its
// operations have been cancelled. It has the key of the signal that ended the coordinator,
// and is caused by it.
const SignalExited = "coordinator.exited"

// An ExitedError names the signal that ended a coordinator. It is the cause with which the
// operations are cancelled. It is a [core.ErrClosed].
type ExitedError struct{ Signal core.Signal }

func (e *ExitedError) Error() string {
	return fmt.Sprintf("earlyexit: ended by signal %q", e.Signal.Name)
}

// Unwrap returns [core.ErrClosed].
func (e *ExitedError) Unwrap() error { return core.ErrClosed }

// An Exit ends a coordinator when a signal comes. It ends the intake, cancels all
// operations, with an [ExitedError] as the cause, and raises [SignalExited]. Make one with
// [On]. An Exit needs no closing: it listens until the coordinator ends. All methods are
// safe for concurrent use.
type Exit struct {
	control core.Control
	taken   atomic.Pointer[ExitedError] // nil: it may come; &over: it cannot come any more

	mu          sync.Mutex
	unsubscribe func()
}

var over ExitedError

// On lets the first signal that matches pattern end a coordinator, or another type with a
// [core.Control]; see [core.Match]. The signal comes from the sink of the coordinator,
// after this call. When the Raise of the signal returns, nothing starts any more. The signal
// has no effect after Close has begun, or after the intake has ended and all accepted items
// are done. [core.SignalStarted] and [core.SignalStopped] do not count, as for the gates of
// coordinators.
func On(control core.Control, pattern string) *Exit {
	x := &Exit{control: control}
	x.mu.Lock()
	x.unsubscribe = control.Sink().Subscribe(pattern, x.take)
	x.mu.Unlock()
	control.OnClosed(func() {
		if x.taken.CompareAndSwap(nil, &over) { // otherwise take unsubscribes: its signal may have handlers that wait for this
			x.unsubscribe()
		}
	})
	return x
}

// take is the handler of the signals.
func (x *Exit) take(s core.Signal) {
	exited := &ExitedError{s}
	if s.Name == core.SignalStarted || s.Name == core.SignalStopped || !x.taken.CompareAndSwap(nil, exited) {
		return
	}
	x.control.Complete()
	x.control.Abort(exited)
	x.mu.Lock() // On may be about to set it
	unsubscribe := x.unsubscribe
	x.mu.Unlock()
	unsubscribe()
	x.control.Sink().Because(s).RaiseKey(SignalExited, s.Key)
}

// exited returns nil if no signal has ended the coordinator.
func (x *Exit) exited() *ExitedError {
	if exited := x.taken.Load(); exited != &over {
		return exited
	}
	return nil
}

// Signal returns the signal that ended the coordinator, and whether there was one.
func (x *Exit) Signal() (core.Signal, bool) {
	if exited := x.exited(); exited != nil {
		return exited.Signal, true
	}
	return core.Signal{}, false
}
