package waves

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/check"
)

// The signals of an executor. Their key is that of the trigger.
const (
	// SignalFailed is raised when the work of a stage has failed: it returned an error,
	// also one of a time limit of its own, or panicked. The payload is an [Event].
	SignalFailed = "stage.failed"
	// SignalCancelled is raised when a run that had started was cancelled, by the early exit
	// or by Close. The payload is an [Event].
	SignalCancelled = "stage.cancelled"
	// SignalExited is raised when the early exit was taken, because of the signal that
	// caused it.
	SignalExited = "stage.exited"
)

// The kinds of the signals with a payload.
var (
	Failed    = core.NewKind[Event](SignalFailed)
	Cancelled = core.NewKind[Event](SignalCancelled)
)

// ValueStage is the name of the value, see [core.Value], by which the operations of an
// executor say which stage they run.
const ValueStage = "stage"

// Options configure an [Executor]. The zero value is the default.
type Options struct {
	// Name tells executors apart: it is the Source of the signals that the work raises.
	// "" means "waves".
	Name string
	// EarlyExit is the pattern of the signals that end everything, see [core.Match]; ""
	// means none.
	EarlyExit string
	// MaxConcurrency is how many runs go at once, of all stages together; 0 means 4.
	MaxConcurrency int
	// MaxQueued is how many runs may wait; 0 means 1024, negative none. When the queue is
	// full, a new run takes the place of the one that has waited longest, which is dropped
	// and counted in Stats.
	MaxQueued int
	// MaxTracked is how many finished runs the executor still shows; 0 means 200, negative
	// none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
}

func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "waves")
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 4)
	return o, check.NotNegative("waves: Options.MaxConcurrency", o.MaxConcurrency)
}

// An Executor runs stages when signals set them off. Make one with [New] and [Executor.Start]
// it. It is used once: an executor that was closed, drained or stopped, or that has taken
// the early exit, does not start again.
//
// All methods are safe for concurrent use, from the work and from handlers as well. An
// idle executor owns no goroutine. But from Start on the sink keeps it in memory, until it
// is closed, drained or stopped, or takes the early exit.
//
// Its operations are the runs. Those that have started have the key of their trigger and,
// as [ValueStage], the name of their stage. Every run that was queued is in exactly one of
// the counters: runs that the early exit or Stop discards are Cancelled, runs that made
// room for newer ones are Dropped.
type Executor struct {
	core.Control
	sink        *core.Sink
	stages      []*stage
	earlyExit   string
	coordinator *core.Coordinator[run]
	settled     atomic.Bool               // the exit is taken, or cannot be taken any more
	exit        atomic.Pointer[ExitError] // nil if it is not taken

	mu       sync.Mutex
	started  bool     // or will never start; the functions do not change any more then
	unlisten []func() // ends the subscriptions to triggers
	unexit   func()   // ends that to EarlyExit
}

var _ core.Inspector = (*Executor)(nil)

// New makes an executor of stages that signals on sink set off, or says what is wrong. It
// starts nothing.
func New(sink *core.Sink, stages []Stage, opts Options) (*Executor, error) {
	prepared, err := prepare(stages)
	opts, wrong := opts.resolved()
	noSink := check.Error(sink == nil, "waves: there must be a sink, not nil, whose signals set off the stages")
	if err = cmp.Or(noSink, err, wrong); err != nil {
		return nil, err
	}
	e := &Executor{sink: sink, stages: prepared, earlyExit: opts.EarlyExit, unexit: func() {}}
	e.coordinator, err = core.NewCoordinator(e.run, core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		DropOldest:     true,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           sink,
	})
	if err != nil {
		return nil, fmt.Errorf("waves: %w", err)
	}
	e.Control = e.coordinator.Control
	return e, nil
}

// Start begins to listen. Only signals that are raised from now on count, for triggers and
// for the early exit. Later calls, and calls after the end, do nothing.
func (e *Executor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return
	}
	e.started = true
	// The exit comes first, so that a signal which is both sets off nothing.
	e.unexit = e.sink.Subscribe(e.earlyExit, e.leave)
	for _, s := range e.stages {
		e.unlisten = append(e.unlisten, e.sink.Subscribe(s.Trigger, func(trigger core.Signal) {
			if e.setsOff(s, trigger) {
				_, _ = e.coordinator.TryEnqueue(context.Background(), run{s, trigger}) // what is not accepted is counted
			}
		}))
	}
}

// setsOff reports whether a signal that matches the trigger of s sets it off.
func (e *Executor) setsOff(s *stage, trigger core.Signal) bool {
	if isLifecycle(trigger) {
		return false
	}
	if event, ok := trigger.Payload().(Event); ok && event.by == s {
		return false
	}
	return trigger.Depth() > 0 || !e.Raised(trigger)
}

// isLifecycle reports whether s is one of the signals that every operation raises while
// a pattern names them. They do not count, as for the gates of coordinators.
func isLifecycle(s core.Signal) bool {
	return s.Name == core.SignalStarted || s.Name == core.SignalStopped
}

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
	if e.settled.Swap(true) {
		return // it was taken, or the executor is closed, which waits for this handler
	}
	exit := &ExitError{s}
	e.exit.Store(exit)
	e.Control.Complete()
	e.Abort(exit)
	e.unlistenAll()
	e.unexit()
	e.sink.Because(s).RaiseKey(SignalExited, s.Key)
}

// Exited returns the signal that made the executor take the early exit, and whether there
// was one.
func (e *Executor) Exited() (core.Signal, bool) {
	if exit := e.exit.Load(); exit != nil {
		return exit.Signal, true
	}
	return core.Signal{}, false
}

// Complete ends the intake: signals set off nothing more, also the signals of runs that
// were queued before. The early exit can still be taken.
func (e *Executor) Complete() {
	e.Control.Complete()
	e.unlistenAll()
}

// Drain is Complete, and then waits until all runs are finished. When ctx ends first it
// returns its cause, and the runs go on. From inside the work of a stage it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (e *Executor) Drain(ctx context.Context) error { return e.ended(e.Control.Drain(ctx)) }

// Stop is Complete, discards the runs that are queued, and then waits until the runs that
// have started are finished. When ctx ends first it returns its cause, and the runs go on.
// From inside the work of a stage it returns [core.ErrWouldDeadlock] and changes nothing.
func (e *Executor) Stop(ctx context.Context) error { return e.ended(e.Control.Stop(ctx)) }

// ended ends the listening after a Drain or Stop with that result.
func (e *Executor) ended(err error) error {
	if err != core.ErrWouldDeadlock {
		e.unlistenAll()
	}
	if err == nil {
		e.detach()
	}
	return err
}

// Close ends the intake, cancels the runs that have started, with the cause
// [core.ErrClosed], counts the queued ones as cancelled, and waits for the work to return.
// Called by the work itself or by a handler it does not wait. It returns nil.
func (e *Executor) Close() error {
	e.detach()
	return e.Control.Close()
}

// detach ends all listening. Unsubscribing waits for handlers that run, so it is not done
// under the lock.
func (e *Executor) detach() {
	e.unlistenAll()
	if !e.settled.Swap(true) { // else a handler of SignalExited may be under way
		e.unexit()
	}
}

// unlistenAll ends the listening to triggers.
func (e *Executor) unlistenAll() {
	e.mu.Lock()
	e.started = true // so that Start does nothing
	e.mu.Unlock()
	for _, cancel := range e.unlisten {
		cancel()
	}
}
