package waveorchestrator

import (
	"context"
	"errors"
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
// limits of waves apply to each execution by itself. [Options.MaxConcurrency] bounds how many
// executions run at once.
//
// Its [core.Control] is that of the coordinator whose operations are the executions: Stats,
// Operations, Explain, Pin and so on are about these. Pause keeps further executions from
// beginning; their calls of Execute wait. [Orchestrator.Runs] shows the runs of workers.
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

	mu       sync.Mutex // also guards the members
	counters Counters
}

var _ core.Inspector = (*Orchestrator[int, int])(nil)
var _ core.Controller = (*Orchestrator[int, int])(nil)

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
	for i := range waves {
		w := &waves[i]
		w.limit = limit(opts.PerWave[w.number], opts.MaxPerWave, unlimited)
		w.started = waveStarted(w.key, w.end-w.from)
		o.widest = max(o.widest, w.end-w.from)
	}
	each := breaker.Options{Threshold: opts.BreakerThreshold, OpenFor: opts.BreakerReset}
	for _, m := range members { // the options are resolved, so there are no errors below
		m.breaker = core.Must(breaker.New(each))
	}
	both := core.Options{
		Name: opts.Name, MaxConcurrency: opts.MaxConcurrency, MaxQueued: unlimited,
		MaxTracked: opts.MaxTracked, MaxAge: opts.MaxAge, Sink: opts.Sink,
	}
	execute := func(ctx context.Context, ex *execution[In, Out]) (struct{}, error) { return struct{}{}, ex.run(ctx) }
	o.executions = core.Must(core.NewResultCoordinator(execute, both))
	o.Control = o.executions.Control
	// The runs have no limit: an execution that waits for its runs must not keep them from starting.
	both.Name, both.MaxConcurrency, both.Sink = opts.Name+".workers", unlimited, o.Sink()
	o.runs = core.Must(core.NewCoordinator(func(ctx context.Context, r *run[In, Out]) error { return r.run(ctx) }, both))
	return o, nil
}

// Execute runs the workers for in, wave after wave, and returns their results when the
// last of them has returned or was abandoned. It waits while the orchestrator is paused, or
// while [Options.MaxConcurrency] executions run.
//
// The error is nil when the execution was completed or left by the early exit, even if
// some workers failed. Otherwise it says why the execution ended, and the result has what
// there was until then: [ErrFailed], if all waves were run and no worker has completed;
// [ErrTimeout]; the cause of ctx, if ctx has ended; the cause given to Cancel;
// [core.ErrClosed] during and after Close, and after Complete, Drain and Stop; for an execution
// that had to wait [core.ErrStopped], if Stop was called; or a [core.PanicError], if
// [Options.EarlyExit] panicked.
//
// An execution takes at most [Options.TotalTimeout] and [Options.Grace], unless EarlyExit
// or handlers of its signals take longer, from when it begins. Execute is a [core.ResultWork], so it can be
// given to [core.NewResultCoordinator] and to middleware.
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
	if ex.begun.CompareAndSwap(false, true) { // so that it never begins
		if err == nil { // it was cancelled while it waited
			_, err = f.Wait(ctx)
		}
		o.Control.Cancel(f.ID(), err)
		return o.reject(err)
	}
	<-done // the execution knows of the end, too
	return ex.result, ex.err
}

// reject is the result of an execution that did not begin.
func (o *Orchestrator[In, Out]) reject(err error) (Result[Out], error) {
	o.update(func(c *Counters) { c.Rejected++ })
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
			Name: m.Name, Wave: m.Wave, Priority: m.Priority,
			Breaker: m.breaker.State(now), Failures: m.breaker.Failures(now), Abandoned: m.abandoned,
		}
		if list[i].Breaker == breaker.Open {
			list[i].Retry = now.Add(m.breaker.ClosesIn(now))
		}
	}
	return list
}

// Counters returns what became of the executions and of the runs of workers. Stats are those of
// the operations, which are the executions.
func (o *Orchestrator[In, Out]) Counters() Counters {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.counters
}

// Runs is the coordinator of the runs of workers, for example for a status page. Its name is
// [Options.Name] with ".workers" behind it. The operations have the name of the worker as Key
// and the execution as Parent. To end or cancel the runs, end or cancel the executions.
func (o *Orchestrator[In, Out]) Runs() core.Inspector { return o.runs }

// Cancel ends an execution with that cause; nil means [core.ErrCancelled]. It does not
// wait for the end. It returns false if no execution of that id waits or is under way, or if
// it is ending early already. A run of a worker cannot be cancelled by itself.
func (o *Orchestrator[In, Out]) Cancel(id core.OperationID, cause error) bool {
	s, _ := o.Lookup(id)
	ex, ok := s.Item.(*execution[In, Out])
	return ok && ex.ending.Load() == nil && o.Control.Cancel(id, cause)
}

// Flush waits until all executions accepted so far have ended, while the intake stays open.
// It does not wait for abandoned workers. When ctx ends first it returns its cause. Called
// from an execution, by a worker for example, it returns [core.ErrWouldDeadlock].
func (o *Orchestrator[In, Out]) Flush(ctx context.Context) error { return o.wait(ctx, o.Control.Flush) }

// WaitIdle waits, like Flush, until there are no executions.
func (o *Orchestrator[In, Out]) WaitIdle(ctx context.Context) error {
	return o.wait(ctx, o.Control.WaitIdle)
}

// Drain ends the intake, as Complete does, and waits until the executions have ended and
// no worker runs any more, abandoned ones included. When ctx ends first it returns its cause.
// Called from an execution it returns [core.ErrWouldDeadlock] and changes nothing.
func (o *Orchestrator[In, Out]) Drain(ctx context.Context) error {
	return o.wait(ctx, o.Control.Drain, o.runs.Flush)
}

// Stop is Drain that cancels the executions that have not begun, with the cause
// [core.ErrStopped].
func (o *Orchestrator[In, Out]) Stop(ctx context.Context) error {
	return o.wait(ctx, o.Control.Stop, o.runs.Flush)
}

// wait waits for one thing after the other, unless the caller is a worker.
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

// Close ends all executions, with the cause [core.ErrClosed], and waits until they have
// returned their results and no worker runs any more, however long abandoned ones take.
// The facts that breakers are open are released. A call from a worker, from
// [Options.EarlyExit] or from a handler does not wait. Close may be called many times,
// and returns nil.
func (o *Orchestrator[In, Out]) Close() error {
	o.close()
	var releases []func()
	o.update(func(*Counters) {
		for _, m := range o.members {
			releases = append(releases, m.release)
		}
	})
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

// end closes the coordinators. The runs come second, because what ends them first counts.
func (o *Orchestrator[In, Out]) end() error { return errors.Join(o.Control.Close(), o.runs.Close()) }

// now is the time since New.
func (o *Orchestrator[In, Out]) now() time.Duration { return time.Since(o.base) }

// update changes the counters, and what else mu guards.
func (o *Orchestrator[In, Out]) update(change func(*Counters)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.counters)
}

// giveBack gives back the permit of a run that was not started.
func (o *Orchestrator[In, Out]) giveBack(r *run[In, Out]) {
	o.update(func(*Counters) { r.m.breaker.Done(r.permit, time.Now(), breaker.Neutral) })
}
