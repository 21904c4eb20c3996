package waveorchestrator

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
)

// An Orchestrator runs its workers for one input after the other, or for many inputs at
// once. Make one with [New]. All methods are safe for concurrent use, from workers and
// handlers as well. An idle orchestrator owns no goroutine, and needs no closing; Close
// makes sure that no worker runs any more.
//
// Executions share the breakers, which remember how the workers did in earlier ones. The
// limits of waves apply to each execution by itself. To bound how many executions run at
// once, give Execute to a coordinator, as the example of [Orchestrator.Execute] does.
type Orchestrator[In, Out any] struct {
	opts      Options[Out]
	members   []*member[In, Out] // in order
	waves     []wave             // in order
	widest    int                // workers of the largest wave
	base      time.Time
	operation *core.Coordinator[task]
	closing   context.Context // ends when Close begins
	close     context.CancelFunc

	mu    sync.Mutex // also guards the members
	stats Stats
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
	o := &Orchestrator[In, Out]{opts: opts, members: members, waves: waves, base: time.Now()}
	o.closing, o.close = context.WithCancel(context.Background())
	for _, w := range waves {
		o.widest = max(o.widest, w.end-w.from)
	}
	for _, m := range members {
		if m.breaker, err = breaker.New(breaker.Options{Threshold: opts.BreakerThreshold, OpenFor: opts.BreakerReset}); err != nil {
			return nil, fmt.Errorf("waveorchestrator: %w", err)
		}
	}
	// One coordinator for both, so that Close knows when it is called from inside. It has
	// no limits: an execution that waits for its runs must not keep them from starting.
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

// Execute runs the workers for in, wave after wave, and returns their results when the
// last of them has returned or was abandoned.
//
// The error is nil when the execution was completed or left by the early exit, even if
// some workers failed. Otherwise it says why the execution ended, and the result has what
// there was until then: [ErrFailed], if all waves were run and no worker has completed;
// [ErrTimeout]; the cause of ctx, if ctx has ended; the cause given to Cancel;
// [core.ErrClosed] during and after Close; or a [core.PanicError], if
// [Options.EarlyExit] panicked.
//
// An execution takes at most [Options.TotalTimeout] and [Options.Grace], unless EarlyExit
// or handlers of its signals take longer. Execute is a [core.ResultWork], so it can be
// given to [core.NewResultCoordinator] and to middleware.
func (o *Orchestrator[In, Out]) Execute(ctx context.Context, in In) (Result[Out], error) {
	ex := &execution[In, Out]{o: o, in: in, caller: ctx, done: make(chan struct{})}
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
	case <-o.closing.Done():
		err = core.ErrClosed
	}
	if ex.begun.CompareAndSwap(false, true) { // so that it never begins
		o.operation.Cancel(id, err)
		return o.reject(err)
	}
	<-ex.done // the execution knows of the end, too
	return ex.result, ex.err
}

// reject is the result of an execution that did not begin.
func (o *Orchestrator[In, Out]) reject(err error) (Result[Out], error) {
	o.update(func(s *Stats) { s.Rejected++ })
	r := Result[Out]{Outcome: OutcomeCancelled}
	for _, m := range o.members {
		r.Skipped = append(r.Skipped, WorkerResult[Out]{Worker: m.Name, Wave: m.Wave, Err: err})
	}
	return r, err
}

// Workers returns the state of the workers, in the order of wave, priority and name.
func (o *Orchestrator[In, Out]) Workers() []WorkerStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]WorkerStatus, 0, len(o.members))
	for _, m := range o.members {
		list = append(list, m.status(time.Now()))
	}
	return list
}

// Stats returns the orchestrator's counters.
func (o *Orchestrator[In, Out]) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stats
}

// Operations walks the executions and the runs of workers that q selects, in the order in
// which they began: those under way, and some that have ended. The key of a run is the
// name of the worker, and its Parent is the execution. An operation that has just ended
// may be shown as running for a moment.
func (o *Orchestrator[In, Out]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return o.operation.Operations(q)
}

// Lookup returns what is known of an execution or a run of a worker.
func (o *Orchestrator[In, Out]) Lookup(id core.OperationID) (core.Snapshot, bool) {
	return o.operation.Lookup(id)
}

// Cancel ends an execution with that cause; nil means [core.ErrCancelled]. It does not
// wait for the end. It returns false if no execution of that id is under way, or if it is
// ending early already. A run of a worker cannot be cancelled by itself.
func (o *Orchestrator[In, Out]) Cancel(id core.OperationID, cause error) bool {
	s, _ := o.operation.Lookup(id)
	ex, ok := s.Item.(*execution[In, Out])
	return ok && ex.ending.Load() == nil && o.operation.Cancel(id, cause)
}

// Name is [Options.Name].
func (o *Orchestrator[In, Out]) Name() string { return o.operation.Name() }

// Sink is where the signals are raised.
func (o *Orchestrator[In, Out]) Sink() *core.Sink { return o.operation.Sink() }

// Close ends all executions, with the cause [core.ErrClosed], and waits until they have
// returned their results and no worker runs any more, however long abandoned ones take.
// The facts that breakers are open are released. A call from a worker, from
// [Options.EarlyExit] or from a handler does not wait. Close may be called many times,
// and returns nil.
func (o *Orchestrator[In, Out]) Close() error {
	o.close()
	var releases []func()
	o.update(func(*Stats) {
		for _, m := range o.members {
			if m.release != nil {
				releases = append(releases, m.release)
			}
		}
	})
	for _, release := range releases {
		release()
	}
	return o.operation.Close()
}

// now is the time since New.
func (o *Orchestrator[In, Out]) now() time.Duration { return time.Since(o.base) }

// update changes the counters, and what else mu guards.
func (o *Orchestrator[In, Out]) update(change func(*Stats)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.stats)
}

// giveBack gives back the permit of a run that was not started.
func (o *Orchestrator[In, Out]) giveBack(r *run[In, Out]) {
	o.update(func(*Stats) { r.m.breaker.Done(r.permit, time.Now(), breaker.Neutral) })
}
