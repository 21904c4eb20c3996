package waves

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// An ExitError is the cause of a cancellation by the early exit.
type ExitError struct{ Signal core.Signal }

func (e *ExitError) Error() string {
	return fmt.Sprintf("waves: early exit because of signal %q", e.Signal.Name)
}

// leave takes the early exit.
func (e *Executor) leave(s core.Signal) {
	if isLifecycle(s) {
		return
	}
	exit := &ExitError{s}
	e.mu.Lock()
	unexit := e.unexit
	e.unexit = nil
	if unexit != nil {
		e.exit.Store(exit)
	}
	e.mu.Unlock()
	if unexit == nil {
		return // it has been taken, or closed, which waits for this handler
	}
	e.coordinator.Complete()
	for op := range e.coordinator.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusRunning}) {
		e.coordinator.Cancel(op.ID, exit)
	}
	unexit()
	e.unlistenAll()
	e.sink.Because(s).RaiseKey(SignalExit, s.Key)
}

// Exited returns the signal that made the executor take the early exit, and
// whether there was one.
func (e *Executor) Exited() (core.Signal, bool) {
	if exit := e.exit.Load(); exit != nil {
		return exit.Signal, true
	}
	return core.Signal{}, false
}
