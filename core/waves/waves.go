package waves

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals of an executor, with the key of the trigger.
const (
	// SignalFail is raised when the work of a stage has failed: returned an
	// error, also that of a time limit of its own, or panicked. The payload is
	// an [Event].
	SignalFail = "stage.fail"
	// SignalCancel is raised when a run that had started was cancelled, by the
	// early exit or Close. The payload is an [Event].
	SignalCancel = "stage.cancel"
	// SignalExit is raised, because of the signal that it was and with its key,
	// when the early exit was taken.
	SignalExit = "stage.exit"
)

// ValueStage is the name of the value, see [core.Value], by which the operations
// of an executor say which stage they run.
const ValueStage = "stage"

// Options configure an [Executor]. The zero value is the default.
type Options struct {
	// Name tells executors apart: it is the Source of the signals that the work
	// raises. "" means "waves".
	Name string
	// EarlyExit is the pattern of the signals that end everything, see
	// [core.Match]; "" means none.
	EarlyExit string
	// MaxConcurrency is how many runs go at once, of all stages together; 0
	// means 4.
	MaxConcurrency int
	// MaxQueued is how many runs may wait; 0 means 1024. When one more comes,
	// the one that has waited longest is dropped, and counted in Stats.
	MaxQueued int
	// MaxTracked is how many finished runs the executor still shows; 0 means
	// 200, negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
}

const defaultMaxConcurrency = 4

// An Executor runs stages as signals set them off. Make one with [New] and
// [Executor.Start] it. It is for one use: what was closed, drained or left by the
// early exit does not start again.
//
// All methods are safe for concurrent use, from the work and from handlers as
// well. An idle executor owns no goroutine, but the sink keeps it alive from Start
// on, until it is closed, has been drained or takes the early exit.
type Executor struct {
	sink        *core.Sink
	stages      []*stage
	earlyExit   string
	coordinator *core.Coordinator[run]
	exit        atomic.Pointer[ExitError] // set once, with mu held

	mu        sync.Mutex
	started   bool
	completed bool     // listens to no more triggers
	unlisten  []func() // ends the subscriptions to triggers
	unexit    func()   // ends that to EarlyExit; who takes it away decides whether the exit is taken
}

var _ core.Lifecycle = (*Executor)(nil)

// New makes an executor of stages that are set off by signals on sink, or says
// what is wrong. It starts nothing.
func New(sink *core.Sink, stages []Stage, opts Options) (*Executor, error) {
	if sink == nil {
		return nil, errors.New("waves: there must be a sink, not nil, whose signals set off the stages")
	}
	prepared, err := prepare(stages)
	if err != nil {
		return nil, err
	}
	if opts.Name == "" {
		opts.Name = "waves"
	}
	if opts.MaxConcurrency == 0 {
		opts.MaxConcurrency = defaultMaxConcurrency
	}
	e := &Executor{sink: sink, stages: prepared, earlyExit: opts.EarlyExit}
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
	return e, nil
}

// Start begins to listen. Only signals that are raised from now on count, for
// triggers and for the early exit. Later calls, and calls after the end, do
// nothing.
func (e *Executor) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.completed {
		return
	}
	e.started = true
	// The exit comes first, so that a signal which is both sets off nothing.
	e.unexit = e.sink.Subscribe(e.earlyExit, e.leave)
	for _, s := range e.stages {
		e.unlisten = append(e.unlisten, e.sink.Subscribe(s.Trigger, func(trigger core.Signal) {
			if e.setsOff(s, trigger) {
				_, _ = e.coordinator.TryEnqueue(run{s, trigger}) // what is not accepted is counted
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
	if trigger.Operation == 0 || trigger.Depth() > 0 || trigger.Source != e.coordinator.Name() {
		return true
	}
	_, own := e.coordinator.Lookup(trigger.Operation)
	return !own
}

// isLifecycle reports whether s is of those that every operation raises while
// somebody listens for them. They do not count, as for the gates of coordinators.
func isLifecycle(s core.Signal) bool {
	return s.Name == core.SignalStarted || s.Name == core.SignalStopped
}

// Stats returns the executor's counters, read as one cut. Every run that was
// queued is in exactly one of them; those discarded by the early exit are
// Cancelled, those that made room for newer ones Dropped.
func (e *Executor) Stats() core.Stats { return e.coordinator.Stats() }

// Operations walks the runs that q selects, in the order in which they were
// queued. Those that have started bear the key of their trigger and, as
// [ValueStage], the name of their stage.
func (e *Executor) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return e.coordinator.Operations(q)
}

// Complete ends the intake: signals set off nothing more, also those that runs
// which were queued before still raise. The early exit can still be taken.
func (e *Executor) Complete() {
	e.coordinator.Complete()
	e.unlistenAll()
}

// Flush waits until all runs queued so far are finished; not for those that they
// set off. When ctx ends first it returns its cause. From inside the work of a
// stage it returns [core.ErrWouldDeadlock].
func (e *Executor) Flush(ctx context.Context) error { return e.coordinator.Flush(ctx) }

// Drain is Complete, and then waits until all runs are finished. When ctx ends
// first it returns its cause; the runs go on. From inside the work of a stage it
// returns [core.ErrWouldDeadlock] and changes nothing.
func (e *Executor) Drain(ctx context.Context) error {
	err := e.coordinator.Drain(ctx)
	switch {
	case err == nil:
		e.detach()
	case e.Stats().Closed:
		e.unlistenAll()
	}
	return err
}

// Close ends the intake, cancels the runs that go, with the cause
// [core.ErrClosed], accounts for those that wait as cancelled, and waits for the
// work to return; called by the work itself or by a handler it does not wait. It
// returns nil.
func (e *Executor) Close() error {
	e.detach()
	return e.coordinator.Close()
}

// detach ends all listening. Handlers that run are waited for, so not under the
// lock.
func (e *Executor) detach() {
	e.unlistenAll()
	e.mu.Lock()
	unexit := e.unexit
	e.unexit = nil
	e.mu.Unlock()
	if unexit != nil {
		unexit()
	}
}

// unlistenAll ends the listening to triggers, for good.
func (e *Executor) unlistenAll() {
	e.mu.Lock()
	e.completed = true
	unlisten := e.unlisten
	e.unlisten = nil
	e.mu.Unlock()
	for _, cancel := range unlisten {
		cancel()
	}
}
