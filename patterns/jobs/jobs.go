package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
)

// A Runner is a coordinator of the runs of its jobs, whose items are of type [Run]. From [New]
// on it accepts a run for each signal that starts a job, until Complete, Drain, Stop or Close;
// the sink keeps it alive until then. All methods are safe for concurrent use, from handlers
// as well.
//
// A run that awaits signals is not in the coordinator yet: it is an operation of
// [Runner.Awaiting]. If the queue is full when its signals have come, it waits for room. Runs
// of its lane that are accepted meanwhile wait behind it. Flush, WaitIdle and Drain wait for
// those runs as well, and Stop and Close cancel them.
type Runner struct {
	core.Control
	jobs   []Job
	keeper *responsibility.Keeper
	before antechamber
	stages core.Lifecycle // before, and the coordinator
	ends   []func()       // of the subscriptions to triggers
}

var _ core.Inspector = (*Runner)(nil)

// job is a job as its Runner sees it.
type job struct {
	Job
	runner *Runner
	to     *core.Coordinator[Run]
	line   *line
}

// New makes a runner. It returns an error if a job or an option is wrong. The options are
// those of a coordinator, except that the default of Name is "jobs", and that of MaxSuspended
// is 10,000: up to MaxSuspended runs may await signals, and as many may pause between attempts
// without a slot. Sink must be nil or the sink of the jobs, and Classes empty. Without Lanes
// there are those that jobs name, from the highest to the lowest in the order in which New got
// them; a job without a lane then names "normal".
func New(sink *core.Sink, jobs []Job, opts core.Options) (*Runner, error) {
	jobs, opts, err := check(sink, jobs, opts)
	if err != nil {
		return nil, err
	}
	r := &Runner{jobs: jobs}
	drainOn := opts.DrainOn
	opts.DrainOn = ""
	c, err := core.NewKeyedCoordinator(func(run Run) string { return run.key }, r.run, opts)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	r.Control = c.Control
	if slices.ContainsFunc(jobs, func(j Job) bool { return j.Pin }) { // it costs each operation a little
		r.keeper = core.Must(responsibility.New(c, sink, responsibility.Options{Name: c.Name()}))
	}
	r.before.buckets = make(map[string]map[*waiting]bool)
	r.before.Coordinator = core.Must(core.NewCoordinator(r.enter, core.Options{
		Name: c.Name() + ".awaiting", MaxConcurrency: max(1, opts.MaxSuspended), MaxQueued: -1}))
	r.before.OnClosed(r.Control.Complete)
	r.stages = core.InOrder(r.before.Coordinator, c)
	lines, awaited := make(map[string]*line), []string(nil)
	for _, declared := range jobs {
		j := &job{Job: declared, runner: r, to: c}
		if j.Lane != "" {
			j.to = j.to.Lane(j.Lane)
		}
		if j.MaxConcurrency > 0 {
			j.to = j.to.Class(j.Name)
		}
		if lines[j.Lane] == nil {
			lines[j.Lane] = &line{last: make(chan struct{})}
			close(lines[j.Lane].last)
		}
		j.line, awaited = lines[j.Lane], append(awaited, j.Await...)
		r.ends = append(r.ends, sink.Subscribe(j.Trigger, j.hear))
	}
	r.ends = append(r.ends, sink.Subscribe(drainOn, func(s core.Signal) {
		if s.Key == "" || core.Match(s.Key, r.Name()) {
			r.Complete()
		}
	}))
	r.OnClosed(sink.Subscribe(strings.Join(awaited, ","), r.before.arrived))
	r.OnClosed(func() { r.Complete(); r.before.Abort(core.ErrClosed) }) // also when the Control is closed
	return r, nil
}

// Jobs returns the jobs by priority, with the defaults and what their groups say in their
// options. Lane is a name only.
func (r *Runner) Jobs() []Job { return slices.Clone(r.jobs) }

// Awaiting returns the coordinator of the runs that await signals: its Stats, Operations and
// Explain show them, and Cancel cancels one. Its operation of a run ends when the Runner has
// accepted the run, and fails if the run is rejected.
func (r *Runner) Awaiting() core.Control { return r.before.Control }

// hear accepts a run for a signal that may start the job.
func (j *job) hear(s core.Signal) {
	if j.accepts != nil && !j.accepts(s) {
		return
	}
	if f, ok := s.Payload().(Failure); ok && f.Run.job == j {
		return
	}
	run := Run{Job: j.Name, Signal: s, job: j}
	if j.Key != nil {
		run.key = j.Key(s)
	}
	var err error
	if len(j.Await) > 0 || j.line.runs.Load() > 0 {
		err = j.runner.await(run)
	} else {
		_, err = j.to.TryEnqueue(core.CausedBy(context.Background(), s), run)
	}
	if err != nil {
		j.runner.reject(run, err)
	}
}

func (r *Runner) reject(run Run, err error) {
	Rejected.Named(SignalRejected+":"+run.Job).Raise(r.Sink().Because(run.Signal), run.Signal.Key, Failure{Run: run, Err: err})
}

// Complete ends the acceptance of runs: signals start no more. Accepted runs go on, also those
// that await signals.
func (r *Runner) Complete() {
	for _, end := range r.ends {
		end()
	}
	r.before.Complete() // and then the coordinator
}

// Flush is that of the coordinator; it also waits for runs that await signals now.
func (r *Runner) Flush(ctx context.Context) error { return r.outside(ctx, r.stages.Flush) }

// Drain is Complete, and then waits like Flush. Signals that are raised meanwhile, also by
// runs, start nothing. To let chains of jobs end, call WaitIdle before.
func (r *Runner) Drain(ctx context.Context) error {
	return r.outside(ctx, func(ctx context.Context) error {
		r.Complete()
		return r.stages.Drain(ctx)
	})
}

// WaitIdle waits until there are no runs, including runs that other runs have started
// meanwhile, and those that await signals. The intake stays open.
func (r *Runner) WaitIdle(ctx context.Context) error {
	return r.outside(ctx, func(ctx context.Context) error {
		for {
			accepted := r.before.Stats().Enqueued
			err := cmp.Or(r.before.WaitIdle(ctx), r.Control.WaitIdle(ctx))
			if err != nil || r.before.Stats().Enqueued == accepted {
				return err
			}
		}
	})
}

// Stop ends the intake, cancels the runs that have not started, those that await signals
// included, and waits for the others.
func (r *Runner) Stop(ctx context.Context) error {
	return r.outside(ctx, func(ctx context.Context) error {
		r.Complete()
		r.before.Abort(core.ErrStopped)
		return r.stages.Stop(ctx)
	})
}

// outside calls a wait for the runs, unless the caller is one of them.
func (r *Runner) outside(ctx context.Context, wait func(context.Context) error) error {
	if r.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	return wait(ctx)
}

// Close accepts no more runs, cancels all runs, waits for the running handlers, and releases
// pins. If it is called by a handler, it does not wait. It returns nil.
func (r *Runner) Close() error {
	r.Complete()
	if r.keeper != nil {
		r.keeper.Close()
	}
	return r.stages.Close()
}
