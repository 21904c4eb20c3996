package waves

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The signals of an executor, beside [earlyexit.SignalExited]. Their key is the key of the
// trigger. The payload is an [Event].
var (
	// Failed is raised when the work of a stage has failed: it returned an error, exceeded a time
	// limit, or panicked.
	Failed = signals.NewKind[Event]("stage.failed")
	// Cancelled is raised when a run that had started was cancelled, for example by the early
	// exit or by Close.
	Cancelled = signals.NewKind[Event]("stage.cancelled")
)

// ValueStage is the name of the value, see [core.Value], by which the operations of an
// executor say which stage they run.
const ValueStage = "stage"

// An Executor runs stages when signals start them. Make one with [New], and call
// [Executor.Start]. It is used once: an executor that was closed, drained or stopped, or that
// has taken the early exit, does not start again.
//
// All methods are safe for concurrent use, from the work and from handlers as well. An idle
// executor owns no goroutine. But from Start on the sink keeps it in memory, until it is
// closed, or its intake has ended and all runs are done. Until then, a signal that comes
// after the end of the intake starts nothing, and counts as Rejected.
//
// Its operations are the runs. Those that have started have the key of their trigger and,
// as [ValueStage], the name of their stage.
type Executor struct {
	core.Control
	coordinator *core.Coordinator[run]
	stages      []*stage
	exitOn      string
	once        sync.Once
	exit        atomic.Pointer[earlyexit.Exit] // nil before Start
}

var _ core.Inspector = (*Executor)(nil)

// New makes an executor of stages, or says what is wrong with them. It starts nothing.
//
// Signals on [core.Options.Sink] start the stages. The first that matches exitOn is the
// early exit; "" means that there is none. The options are the options of a coordinator,
// with these differences: Name is "waves" by default, MaxConcurrency is 4 by default, for
// all stages together, DropOldest is always on, and Lanes and Classes are not accepted.
//
//ephemeral:pattern {exitOn}
func New(stages []Stage, exitOn string, opts core.Options) (*Executor, error) {
	prepared, err := prepare(stages)
	if err != nil {
		return nil, err
	}
	if len(opts.Lanes)+len(opts.Classes) > 0 {
		return nil, errors.New("waves: Options.Lanes and Classes are for coordinators, not for an executor")
	}
	opts.Name = cmp.Or(opts.Name, "waves")
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, 4)
	opts.DropOldest = true
	e := &Executor{stages: prepared, exitOn: exitOn}
	if e.coordinator, err = core.NewCoordinator(e.run, opts); err != nil {
		return nil, fmt.Errorf("waves: %w", err)
	}
	e.Control = e.coordinator.Control
	return e, nil
}

// Start begins to listen. Only signals that are raised from now on count, for triggers and
// for the early exit. Later calls, and calls after the end, do nothing.
func (e *Executor) Start() {
	e.once.Do(func() {
		// The exit comes first: a signal that matches both the exit and a trigger starts
		// nothing.
		e.exit.Store(earlyexit.On(e, e.exitOn))
		for _, s := range e.stages {
			e.OnClosed(e.Sink().Subscribe(s.Trigger, func(trigger signals.Signal) {
				if e.setsOff(s, trigger) {
					_, _ = e.coordinator.TryEnqueue(context.Background(), run{s, trigger}) // a rejected signal is counted
				}
			}))
		}
	})
}

// setsOff reports whether a signal that matches the trigger of s starts it.
func (e *Executor) setsOff(s *stage, trigger signals.Signal) bool {
	if trigger.Name == signals.SignalStarted || trigger.Name == signals.SignalStopped {
		return false
	}
	if event, ok := trigger.Payload().(Event); ok && event.by == s {
		return false
	}
	if trigger.Depth() > 0 || trigger.Source != e.Name() {
		return true
	}
	_, own := e.Lookup(trigger.Operation)
	return !own
}

// Exited returns the signal that was the early exit, and whether there was one.
func (e *Executor) Exited() (signals.Signal, bool) {
	if exit := e.exit.Load(); exit != nil {
		return exit.Signal()
	}
	return signals.Signal{}, false
}
