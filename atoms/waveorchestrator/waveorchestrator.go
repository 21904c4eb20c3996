package waveorchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// An Orchestrator runs its workers for one input after the other, or for many inputs at
// once. Make one with [New]. All methods are safe for concurrent use, also from workers and
// handlers. An idle orchestrator owns no goroutine, and need not be closed. After Close, no
// worker runs.
//
// Executions share the breakers of the workers. The limits of waves apply to each execution by
// itself. [Options.MaxConcurrency] limits how many executions run at once.
//
// The operations of its [core.Control] are the executions: Stats, Operations, Explain and the
// other methods show these. After Pause, no execution begins, and calls of Execute wait.
// [Orchestrator.Runs] shows the runs of workers.
type Orchestrator[In, Out any] struct {
	core.Control
	runs *core.Coordinator[*run[In, Out]]

	executions *core.ResultCoordinator[*execution[In, Out], struct{}]

	opts    Options[Out]
	members []*member[In, Out] // in order
	waves   []wave             // in order
	widest  int                // workers of the largest wave
	base    time.Time
	closing context.Context // ends when Close begins
	close   context.CancelFunc

	mu sync.Mutex // guards the members
}

var _ core.Inspector = (*Orchestrator[int, int])(nil)
var _ inspect.Actions = (*Orchestrator[int, int])(nil)

// New makes an orchestrator of workers. If a worker or an option is wrong, New returns an error.
// It starts no goroutine.
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
	for i := range waves {
		w := &waves[i]
		w.limit = limit(opts.PerWave[w.number], opts.MaxPerWave, unlimited)
		w.started = waveStarted(w.key, w.end-w.from)
		o.widest = max(o.widest, w.end-w.from)
	}
	each := breaker.Options{Threshold: opts.BreakerThreshold, OpenFor: opts.BreakerReset}
	for _, m := range members { // the options are valid, so there are no errors below
		m.breaker = core.Must(breaker.New(each))
	}
	both := core.Options{
		Name: opts.Name, MaxConcurrency: opts.MaxConcurrency, MaxQueued: unlimited,
		Sink: opts.Sink,
	}
	execute := func(ctx context.Context, ex *execution[In, Out]) (struct{}, error) { return struct{}{}, ex.run(ctx) }
	o.executions = core.Must(core.NewResultCoordinator(execute, both))
	o.Control = o.executions.Control
	// The runs have no limit: an execution that waits for its runs must not keep them from starting.
	both.Name, both.MaxConcurrency, both.Sink = opts.Name+".workers", unlimited, o.Sink()
	o.runs = core.Must(core.NewCoordinator(func(ctx context.Context, r *run[In, Out]) error { return r.run(ctx) }, both))
	return o, nil
}

// Execute runs the workers for in, wave after wave. It returns their results when the last
// worker has returned or was abandoned. It waits while the orchestrator is paused, or while
// [Options.MaxConcurrency] executions run.
//
// After completion or an early exit, the error is nil, even if some workers failed. Otherwise
// the result has the values so far, and the error is one of these:
//
//   - [ErrFailed]: all waves were run, and no worker has completed.
//   - [ErrTimeout]: [Options.TotalTimeout] has passed.
//   - The cause of ctx: ctx has ended.
//   - The cause of Cancel: Cancel was called.
//   - [core.ErrClosed]: Close was called, or Complete, Drain or Stop was called before Execute.
//   - [core.ErrStopped]: Stop was called before the execution began.
//   - A [core.PanicError]: [Options.EarlyExit] panicked.
//
// After it has begun, an execution takes at most [Options.TotalTimeout] plus [Options.Grace],
// unless EarlyExit or handlers of its signals take longer. Execute is a [core.ResultWork], for
// [core.NewResultCoordinator] and middleware.
func (o *Orchestrator[In, Out]) Execute(ctx context.Context, in In) (Result[Out], error) {
	ex := &execution[In, Out]{o: o, in: in, caller: ctx}
	f, err := o.executions.Submit(ctx, ex)
	if err != nil {
		return o.reject(err)
	}
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("execution "+f.ID().String()+" of "+o.Name(), time.Time{})()
	}
	done := f.Done()
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-o.closing.Done():
		err = core.ErrClosed
	}
	if ex.begun.CompareAndSwap(false, true) { // the execution can no longer begin
		if err == nil { // the execution was cancelled while it waited
			_, err = f.Wait(ctx)
		}
		o.Control.Cancel(f.ID(), err)
		return o.reject(err)
	}
	<-done // the execution reacts to the end of ctx, too
	return ex.result, ex.err
}

// reject is the result of an execution that did not begin.
func (o *Orchestrator[In, Out]) reject(err error) (Result[Out], error) {
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
	now, list := time.Now(), make([]WorkerStatus, len(o.members))
	for i, m := range o.members {
		list[i] = WorkerStatus{
			Name: m.Name, Breaker: m.breaker.State(now), Failures: m.breaker.Failures(now),
		}
		if list[i].Breaker == breaker.Open {
			list[i].Retry = now.Add(m.breaker.ClosesIn(now))
		}
	}
	return list
}

// Runs returns an inspector of the runs of workers, for example for a status page. Its name is
// [Options.Name] + ".workers". The Key of an operation is the name of the worker, and the Parent
// is the execution. To cancel runs, cancel their execution.
func (o *Orchestrator[In, Out]) Runs() core.Inspector { return o.runs }

// Cancel cancels an execution with that cause; nil means [core.ErrCancelled]. It does not wait
// for the end. If there is no such execution, or if it is ending already, Cancel returns false.
// A run of a worker cannot be cancelled by itself.
func (o *Orchestrator[In, Out]) Cancel(id core.OperationID, cause error) bool {
	s, _ := o.Lookup(id)
	ex, ok := s.Item.(*execution[In, Out])
	return ok && ex.ending.Load() == nil && o.Control.Cancel(id, cause)
}

// Flush waits until all executions accepted so far have ended. It does not wait for abandoned
// runs. If ctx ends first, Flush returns the cause of ctx. If Flush is called from an execution,
// for example by a worker, it returns [core.ErrWouldDeadlock].
func (o *Orchestrator[In, Out]) Flush(ctx context.Context) error { return o.wait(ctx, o.Control.Flush) }

// WaitIdle is like Flush, but it also waits for executions that are accepted meanwhile.
func (o *Orchestrator[In, Out]) WaitIdle(ctx context.Context) error {
	return o.wait(ctx, o.Control.WaitIdle)
}

// Drain ends the intake, like Complete. It waits until all executions have ended and all runs of
// workers have returned, including abandoned ones. If ctx ends first, Drain returns the cause of
// ctx. If Drain is called from an execution, it returns [core.ErrWouldDeadlock] and changes
// nothing.
func (o *Orchestrator[In, Out]) Drain(ctx context.Context) error {
	return o.wait(ctx, o.Control.Drain, o.runs.Flush)
}

// Stop is like Drain, but it cancels the executions that have not begun with the cause
// [core.ErrStopped].
func (o *Orchestrator[In, Out]) Stop(ctx context.Context) error {
	return o.wait(ctx, o.Control.Stop, o.runs.Flush)
}

// wait calls one function after the other, unless the caller is a worker.
func (o *Orchestrator[In, Out]) wait(ctx context.Context, waits ...func(context.Context) error) error {
	if o.runs.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close cancels all executions with the cause [core.ErrClosed]. It waits until they have ended and
// all runs of workers have returned, including abandoned ones. It removes the signals of open
// breakers. If Close is called from a worker, from [Options.EarlyExit] or from a handler, it does
// not wait. Further calls change nothing. Close always returns nil.
func (o *Orchestrator[In, Out]) Close() error {
	o.close()
	var releases []func()
	o.mu.Lock()
	for _, m := range o.members {
		releases = append(releases, m.release)
	}
	o.mu.Unlock()
	for _, release := range releases {
		release()
	}
	if here := context.Background(); o.runs.Inside(here) || o.Inside(here) {
		o.Complete()
		o.Abort(core.ErrClosed)
		go o.end()
		return nil
	}
	return o.end()
}

// end closes the coordinators. It closes the runs second, because the first cause counts: a run
// must end because its execution ends.
func (o *Orchestrator[In, Out]) end() error { return errors.Join(o.Control.Close(), o.runs.Close()) }

// now is the time since New.
func (o *Orchestrator[In, Out]) now() time.Duration { return time.Since(o.base) }

// giveBack gives back the permit of a run that was not started.
func (o *Orchestrator[In, Out]) giveBack(r *run[In, Out]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.m.breaker.Done(r.permit, time.Now(), breaker.Neutral)
}
