package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
)

// A Runner is a coordinator of the runs of its jobs, whose items are of type [Run]. It accepts a
// run for each signal that sets off a job, from [New] on until Complete, Drain, Stop or Close;
// the sink keeps it alive until then. All methods are safe for concurrent use, from handlers as
// well.
//
// Runs that await signals are no operations yet. [Stats] counts them as suspended, Awaiting
// lists them, and Flush, WaitIdle and Drain wait for them. Stop, Close and Abort cancel them.
type Runner struct {
	core.Control
	jobs     []Job
	keeper   *responsibility.Keeper
	capacity int // of waiting
	told     func(core.Snapshot)
	end      []func() // end the subscriptions to triggers
	rejected atomic.Uint64

	mu        sync.Mutex
	waiting   map[*wait]struct{} // that are not in the coordinator yet
	number    uint64
	cancelled uint64 // of those that waited
	completed bool
}

var _ core.Inspector = (*Runner)(nil)

// job is a job as its Runner sees it.
type job struct {
	Job
	runner *Runner
	to     *core.Coordinator[Run]
	line   *line
	awaits []*awaited
}

// New makes a runner, or says what is wrong with the jobs or the options. The options are those
// of a coordinator, except that the default of Name is "jobs", and that of MaxSuspended is
// 10,000: as many runs may await signals, and as many may pause between attempts without
// keeping their slots. Sink must be nil or the sink of the jobs, and Classes empty. Without
// Lanes there are those that jobs name, in the order of the jobs, the first one as the highest,
// and below them "normal", if there are jobs without a lane.
func New(sink *core.Sink, jobs []Job, opts core.Options) (*Runner, error) {
	jobs, opts, err := check(sink, jobs, opts)
	if err != nil {
		return nil, err
	}
	r := &Runner{
		jobs:     jobs,
		capacity: opts.MaxSuspended,
		told:     opts.OnDone,
		waiting:  make(map[*wait]struct{}),
	}
	drainOn := opts.DrainOn
	opts.DrainOn = ""
	c, err := core.NewKeyedCoordinator(func(run Run) string { return run.key }, r.run, opts)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	r.Control = c.Control
	r.keeper = core.Must(responsibility.New(c, sink, responsibility.Options{Name: c.Name()}))
	lines, conditions := make(map[string]*line), make(map[condition]*awaited)
	for _, declared := range jobs {
		j := &job{Job: declared, runner: r, to: c}
		if j.Lane != "" {
			j.to = j.to.Lane(j.Lane)
		}
		if j.MaxConcurrency > 0 {
			j.to = j.to.Class(j.Name)
		}
		if lines[j.Lane] == nil {
			lines[j.Lane] = new(line)
		}
		j.line = lines[j.Lane]
		for _, pattern := range j.Await {
			is := condition{pattern, j.AwaitSameKey}
			a := conditions[is]
			if a == nil {
				a = &awaited{is, make(map[string][]*wait)}
				conditions[is] = a
				r.OnClosed(sink.Subscribe(pattern, func(s core.Signal) { r.arrived(a, s.Key) }))
			}
			j.awaits = append(j.awaits, a)
		}
		r.end = append(r.end, sink.Subscribe(j.Trigger, j.hear))
	}
	if drainOn != "" {
		r.end = append(r.end, sink.Subscribe(drainOn, func(s core.Signal) {
			if s.Key == "" || core.Match(s.Key, r.Name()) {
				r.Complete()
			}
		}))
	}
	r.OnClosed(func() { // also when the Control is closed
		r.Complete()
		r.cancelWaiting(core.ErrClosed)
	})
	return r, nil
}

// Jobs returns the jobs by priority, with the defaults and what their groups say in their
// options. Lane is a name only.
func (r *Runner) Jobs() []Job { return slices.Clone(r.jobs) }

// hear accepts a run for a signal that may set off the job.
func (j *job) hear(s core.Signal) {
	if j.accepts != nil && !j.accepts(s) {
		return
	}
	if f, ok := s.Payload().(Failure); ok && f.Run.Job == j.Name {
		return
	}
	run := Run{Job: j.Name, Signal: s, job: j}
	switch {
	case j.key != nil:
		run.key = j.key(s)
	case j.Key != nil:
		run.key = j.Key(s)
	}
	switch {
	case len(j.awaits) > 0:
		j.runner.await(run)
	case j.line.busy.Load():
		j.runner.queue(run)
	default:
		j.runner.admit(run)
	}
}

// admit puts a run into the coordinator, or rejects it.
func (r *Runner) admit(run Run) {
	if _, err := run.job.to.TryEnqueue(run.context(), run); err != nil {
		r.reject(run, err)
	}
}

func (run *Run) context() context.Context {
	return core.CausedBy(context.Background(), run.Signal)
}

func (r *Runner) reject(run Run, err error) {
	r.rejected.Add(1)
	Rejected.Named(SignalRejected+":"+run.Job).Raise(r.Sink().Because(run.Signal), run.Signal.Key, Failure{Run: run, Err: err})
}

// Stats are the counters of the coordinator. Runs that await signals count as enqueued and
// suspended. Rejected are the runs for which there was no room, or that CancelOn refused.
func (r *Runner) Stats() core.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, waiting := r.Control.Stats(), len(r.waiting)
	s.Enqueued += uint64(waiting) + r.cancelled
	s.Suspended += waiting
	s.Cancelled += r.cancelled
	s.Rejected = r.rejected.Load()
	s.Closed = s.Closed || r.completed
	return s
}

// Complete ends the intake: signals set off no further runs. What was accepted still runs, also
// if it awaits signals.
func (r *Runner) Complete() {
	r.unsubscribe()
	r.mu.Lock()
	r.completed = true
	none := len(r.waiting) == 0
	r.mu.Unlock()
	if none {
		r.Control.Complete()
	}
}

func (r *Runner) unsubscribe() {
	for _, end := range r.end {
		end()
	}
}

// Flush is that of the coordinator; it also waits for runs that await signals now.
func (r *Runner) Flush(ctx context.Context) error {
	if r.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	if err := r.entered(ctx); err != nil {
		return err
	}
	return r.Control.Flush(ctx)
}

// Drain ends the intake, as Complete does, and waits as Flush does. Signals that are raised
// meanwhile, also by runs, set off nothing: to let chains of jobs end, call WaitIdle before.
func (r *Runner) Drain(ctx context.Context) error {
	if r.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	r.Complete()
	return r.Flush(ctx)
}

// WaitIdle waits until there are no runs, those included that runs have set off meanwhile, and
// those that await signals. The intake stays open.
func (r *Runner) WaitIdle(ctx context.Context) error {
	for {
		if r.Inside(ctx) {
			return core.ErrWouldDeadlock
		}
		if err := cmp.Or(r.entered(ctx), r.Control.WaitIdle(ctx)); err != nil {
			return err
		}
		if s := r.Stats(); s.Pending+s.Running+s.Suspended == 0 {
			return nil
		}
	}
}

// Stop ends the intake, cancels the runs that have not started, those that await signals
// included, and waits for the others.
func (r *Runner) Stop(ctx context.Context) error {
	if r.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	r.Complete()
	r.cancelWaiting(core.ErrStopped)
	return r.Control.Stop(ctx)
}

// Abort cancels all runs. The intake stays open.
func (r *Runner) Abort(cause error) {
	r.cancelWaiting(cmp.Or(cause, core.ErrCancelled))
	r.Control.Abort(cause)
}

// Close ends the intake, cancels all runs, waits for the handlers that run, unless it is called
// by one of them, and releases pins. It returns nil.
func (r *Runner) Close() error {
	r.keeper.Close()
	return r.Control.Close()
}
