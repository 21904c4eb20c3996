package waveorchestrator

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Orchestrator runs its workers for one input after the other, or for many at
// once. Make one with [New]. All methods are safe for concurrent use, from workers
// and handlers as well. It owns no goroutine while it has nothing to do, and needs
// no closing, except to be sure that no worker runs any more.
//
// What executions have in common are the breakers, which know the workers across
// executions. The limits of waves are those of each execution; to bound how many
// executions run at once, let a coordinator do it, see [Orchestrator.Execute].
type Orchestrator[In, Out any] struct {
	opts      Options[Out]
	members   []*member[In, Out] // in order
	waves     []wave             // in order
	widest    int                // workers of the largest wave
	base      time.Time
	operation *core.Coordinator[task]
	closing   chan struct{} // closed when Close begins
	close     sync.Once

	mu       sync.Mutex
	stats    Stats
	underway map[core.OperationID]*execution[In, Out]
}

// task is an operation of an orchestrator: an execution, or a run of a worker.
type task interface {
	run(ctx context.Context) error
}

// New makes an orchestrator of workers, or says what is wrong with them or with the
// options. It starts nothing.
func New[In, Out any](workers []Worker[In, Out], opts Options[Out]) (*Orchestrator[In, Out], error) {
	members, waves, err := plan(workers)
	if err != nil {
		return nil, err
	}
	if opts, err = opts.resolved(waves); err != nil {
		return nil, err
	}
	o := &Orchestrator[In, Out]{
		opts: opts, members: members, waves: waves, base: time.Now(),
		closing: make(chan struct{}), underway: make(map[core.OperationID]*execution[In, Out]),
	}
	for _, w := range waves {
		o.widest = max(o.widest, w.end-w.from)
	}
	for _, m := range members {
		m.maxAbandoned = opts.MaxAbandoned
		m.breaker = newBreaker(opts.BreakerThreshold, opts.BreakerReset)
	}
	// One coordinator for both, so that Close knows whether it is called from
	// inside. It bounds nothing: who waits for others must not take their place.
	o.operation, err = core.NewCoordinator(func(ctx context.Context, t task) error { return t.run(ctx) }, core.Options{
		Name:           opts.Name,
		MaxConcurrency: unlimited,
		MaxQueued:      unlimited,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("waveorchestrator: %w", err)
	}
	return o, nil
}

// Execute runs the workers for in, wave after wave, and returns what came of it
// when the last of them has returned or was abandoned.
//
// The error is nil when the execution was completed or left by the early exit,
// whatever workers have failed. Otherwise it says what ended it, and the result has
// what there was until then: [ErrTimeout]; the cause of ctx, when that has ended, or
// that of Cancel; [core.ErrClosed] during and after Close; or, if [Options.EarlyExit]
// panicked, a [core.PanicError].
//
// An execution takes at most [Options.TotalTimeout] and [Options.Grace], as far as
// handlers of its signals and EarlyExit do not hold it up. It is a [core.ResultWork],
// so it can be given to [core.NewResultCoordinator] and to middleware as it is.
func (o *Orchestrator[In, Out]) Execute(ctx context.Context, in In) (Result[Out], error) {
	ex := &execution[In, Out]{o: o, in: in, caller: ctx, armed: never, done: make(chan struct{})}
	id, err := o.operation.Enqueue(ctx, ex)
	if err != nil {
		return o.reject(err)
	}
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("execution "+id.String()+" of "+o.Name(), time.Time{})()
	}
	select {
	case <-ex.done:
		return ex.result, ex.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-o.closing:
		err = core.ErrClosed
	}
	if ex.begun.CompareAndSwap(false, true) { // and it does not any more
		o.operation.Cancel(id, err)
		return o.reject(err)
	}
	<-ex.done // it has heard of it, too
	return ex.result, ex.err
}

// reject is the result of an execution that did not begin.
func (o *Orchestrator[In, Out]) reject(err error) (Result[Out], error) {
	o.mu.Lock()
	o.stats.Rejected++
	o.mu.Unlock()
	r := Result[Out]{Outcome: OutcomeCancelled}
	for _, m := range o.members {
		r.Skipped = append(r.Skipped, WorkerResult[Out]{Worker: m.Name, Wave: m.Wave, Err: err})
	}
	return r, err
}

// Workers returns how the workers stand, in the order of wave, priority and name.
func (o *Orchestrator[In, Out]) Workers() []WorkerStatus {
	list := make([]WorkerStatus, 0, len(o.members))
	for _, m := range o.members {
		list = append(list, m.status(o.base))
	}
	return list
}

// Stats returns the orchestrator's counters.
func (o *Orchestrator[In, Out]) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stats
}

// Operations walks what q selects of the executions and of the runs of workers, in
// the order in which they began: those under way, and some that have ended. The key
// of a run is the name of the worker, and its Parent the execution. One that has
// just ended may be shown as running for a moment.
func (o *Orchestrator[In, Out]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return o.operation.Operations(q)
}

// Lookup returns what is known of an execution or a run of a worker.
func (o *Orchestrator[In, Out]) Lookup(id core.OperationID) (core.Snapshot, bool) {
	return o.operation.Lookup(id)
}

// Cancel ends an execution, as the end of the context of Execute does, with that
// cause; nil means [core.ErrCancelled]. It does not wait for that. It reports false if
// no execution of that id is under way; a run of a worker cannot be cancelled alone.
func (o *Orchestrator[In, Out]) Cancel(id core.OperationID, cause error) bool {
	if cause == nil {
		cause = core.ErrCancelled
	}
	o.mu.Lock()
	ex := o.underway[id]
	o.mu.Unlock()
	if ex == nil {
		return false
	}
	ex.cancel(cause)
	return true
}

// Name is [Options.Name].
func (o *Orchestrator[In, Out]) Name() string { return o.operation.Name() }

// Sink is where the signals are raised.
func (o *Orchestrator[In, Out]) Sink() *core.Sink { return o.operation.Sink() }

// Close ends all executions, with the cause [core.ErrClosed], and waits until they
// have returned their results and no worker runs any more; for abandoned ones as
// long as it takes. That breakers are open is not held any longer. Called by a worker,
// by [Options.EarlyExit] or by a handler it does not wait. It may be called many
// times, and returns nil.
func (o *Orchestrator[In, Out]) Close() error {
	o.close.Do(func() { close(o.closing) })
	for _, m := range o.members {
		m.releaseOpened()
	}
	return o.operation.Close()
}

// closed reports whether Close has begun.
func (o *Orchestrator[In, Out]) closed() bool {
	select {
	case <-o.closing:
		return true
	default:
		return false
	}
}

// now is the time, as what has passed since New.
func (o *Orchestrator[In, Out]) now() time.Duration { return time.Since(o.base) }

// holdOpened tells that a breaker has opened, for as long as it is sure to be open.
func (o *Orchestrator[In, Out]) holdOpened(m *member[In, Out], failures int, until time.Duration) {
	release := o.Sink().Hold(m.signals.opened+strconv.Itoa(failures), m.Name, max(until-o.now(), 1))
	m.mu.Lock()
	m.release = release
	m.mu.Unlock()
	if o.closed() { // otherwise Close will
		release()
	}
}

// begun counts an execution that begins.
func (o *Orchestrator[In, Out]) begun(ex *execution[In, Out]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.underway[ex.op.ID()] = ex
	o.stats.Executions++
	o.stats.Running++
}

// ended counts an execution that has ended.
func (o *Orchestrator[In, Out]) ended(ex *execution[In, Out]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.underway, ex.op.ID())
	r := &ex.result
	o.stats.count(r.Outcome)
	o.stats.WorkersCompleted += uint64(len(r.Completed))
	o.stats.WorkersFailed += uint64(len(r.Failed))
	o.stats.WorkersCancelled += uint64(len(r.Cancelled))
	o.stats.WorkersRun += uint64(len(r.Completed) + len(r.Failed) + len(r.Cancelled))
	o.stats.WorkersSkipped += uint64(len(r.Skipped))
}

// late counts a value that was dropped.
func (o *Orchestrator[In, Out]) late() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stats.Late++
}

// abandon counts a run that is abandoned, unless it has returned.
func (o *Orchestrator[In, Out]) abandon(r *run[In, Out]) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if !r.stage.CompareAndSwap(stageRunning, stageAbandoned) {
		return false
	}
	r.m.abandoned++
	o.stats.WorkersAbandoned++
	o.stats.StillAbandoned++
	return true
}

// outlived counts an abandoned run that has returned after all.
func (o *Orchestrator[In, Out]) outlived(m *member[In, Out]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.abandoned--
	o.stats.StillAbandoned--
}
