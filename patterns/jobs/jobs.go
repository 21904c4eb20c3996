package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Runner is a coordinator of the runs of its jobs. Its items have the type [Run]. From [New]
// on, it accepts a run for each signal that starts a job, and the sink keeps it alive. This ends
// with Complete, Drain, Stop or Close. All methods are safe for concurrent use, even from
// handlers. If a run calls Flush, WaitIdle, Drain or Stop, it gets [core.ErrWouldDeadlock].
//
// A run that awaits signals is not in the coordinator yet: it is an operation of
// [Runner.Awaiting]. If the queue is full when its signals have come, the run waits for room. Runs
// of its lane that are accepted meanwhile wait behind it. Flush, WaitIdle and Drain also wait for
// all these runs. Stop and Close cancel them.
type Runner struct {
	core.Control
	jobs   []Job
	keeper *responsibility.Keeper
	before antechamber
	stages core.Lifecycle // the antechamber, and then the coordinator
	ends   []func()       // end the subscriptions to triggers
}

var _ core.Inspector = (*Runner)(nil)

// job is a job as its Runner sees it.
type job struct {
	Job
	runner *Runner
	to     *core.Coordinator[Run]
	line   *line
}

// New makes a runner for the signals of sink. If a job or an option is wrong, New returns an
// error. The options are the options of a coordinator, with these differences:
//
//   - The default of Name is "jobs".
//   - The default of MaxSuspended is 10,000. At most MaxSuspended runs await signals. At most
//     MaxSuspended other runs pause between attempts without a slot.
//   - Sink must be nil or the sink of the jobs. Classes must be empty.
//   - Without Lanes, the lanes are the lanes that jobs name. The lane that the first job names is
//     the highest, and so on. A job without a lane names "normal".
func New(sink *signals.Sink, jobs []Job, opts core.Options) (*Runner, error) {
	jobs, opts, err := check(sink, jobs, opts)
	if err != nil {
		return nil, err
	}
	r, drainOn := &Runner{jobs: jobs}, opts.DrainOn
	opts.DrainOn = ""
	c, err := core.NewKeyedCoordinator(func(run Run) string { return run.key }, r.run, opts)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	r.Control = c.Control
	if slices.ContainsFunc(jobs, func(j Job) bool { return j.Pin }) { // a keeper has a small cost for each operation
		r.keeper = core.Must(responsibility.New(c, sink, responsibility.Options{}))
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
	r.ends = append(r.ends, sink.Subscribe(drainOn, func(s signals.Signal) {
		if s.Key == "" || signals.Match(s.Key, r.Name()) {
			r.Complete()
		}
	}))
	r.OnClosed(sink.Subscribe(strings.Join(awaited, ","), r.before.arrived))
	r.OnClosed(func() { r.Complete(); r.before.Abort(core.ErrClosed) }) // called even if the Control is closed
	return r, nil
}

// Jobs returns the jobs in the order of priority. Their options have the defaults and the values
// of their groups in place of zeros. Lane is a name without a limit.
func (r *Runner) Jobs() []Job { return slices.Clone(r.jobs) }

// Awaiting returns the control of another coordinator. Its operations are the runs that await
// signals: Stats, Operations and Explain show them, and Cancel cancels one. Such an operation ends
// when the run enters the queue of the Runner. If the run is rejected, the operation fails.
func (r *Runner) Awaiting() core.Control { return r.before.Control }

// hear accepts a run for a signal that may start the job.
func (j *job) hear(s signals.Signal) {
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
		_, err = j.to.TryEnqueue(signals.CausedBy(context.Background(), s), run)
	}
	if err != nil {
		j.runner.reject(run, err)
	}
}

func (r *Runner) reject(run Run, err error) {
	Rejected.Named(rejected+":"+run.Job).Raise(r.Sink().Because(run.Signal), run.Signal.Key, Failure{Run: run, Err: err, Reason: "the run was not accepted"})
}

// Complete ends the intake: signals start no more runs. Accepted runs go on, including those
// that await signals.
func (r *Runner) Complete() {
	for _, end := range r.ends {
		end()
	}
	r.before.Complete() // stages ends the coordinator after that
}

// Flush waits until all runs accepted so far have ended, including those that await signals. If
// ctx ends first, Flush returns the cause of ctx.
func (r *Runner) Flush(ctx context.Context) error { return r.outside(ctx, r.stages.Flush) }

// Drain calls Complete and waits like Flush. Signals that are raised meanwhile start
// nothing, not even signals of runs. To let chains of jobs end, call WaitIdle before Drain.
func (r *Runner) Drain(ctx context.Context) error {
	return r.outside(ctx, func(ctx context.Context) error {
		r.Complete()
		return r.stages.Drain(ctx)
	})
}

// WaitIdle waits until there are no runs. It also waits for runs that other runs start meanwhile,
// and for runs that await signals. The intake stays open. If ctx ends first, WaitIdle returns the
// cause of ctx.
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

// Stop ends the intake, and cancels the runs that have not started, including those that
// await signals, with the cause [core.ErrStopped]. Then it waits for the other runs like
// Flush.
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

// Close ends the intake, cancels all runs with the cause [core.ErrClosed], and releases the pins.
// It waits for the running handlers. If a handler calls Close, Close does not wait. Close always
// returns nil.
func (r *Runner) Close() error {
	r.Complete()
	if r.keeper != nil {
		r.keeper.Close()
	}
	return r.stages.Close()
}
