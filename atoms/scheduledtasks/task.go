package scheduledtasks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Task is the work of a schedule for one tick. Its fields, except ScheduledAt, come from
// the [Definition].
type Task struct {
	Name string `json:"name"` // of the schedule
	//ephemeral:is {Definition.Signal}
	Signal      string          `json:"signal,omitempty"`
	Key         string          `json:"key,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Description string          `json:"description,omitempty"`
	ScheduledAt time.Time       `json:"scheduledAt"` // the tick, or when RunNow was called; in UTC
}

// ID is the name of the schedule, "@", and the tick. If a task is handed over twice, it has the
// same ID both times, in any process.
func (t Task) ID() string { return t.Name + "@" + t.ScheduledAt.UTC().Format(time.RFC3339Nano) }

// A Target accepts tasks. A *core.Coordinator[Task] is one. [SkipOverlap] also needs
// the method Lookup of a coordinator. [Scheduler.WaitIdle] calls WaitIdle of the target if the
// target has that method.
type Target interface {
	Enqueue(ctx context.Context, task Task) (core.OperationID, error)
}

// A TargetFunc makes a Target of a function. It has the signature of a [core.Work], so
// middleware such as retry.Wrap can wrap it. The following one hands tasks to a queue of
// package durable. Each tick becomes one item, in any number of processes, if all calls for
// it come within UniqueFor:
//
//	scheduledtasks.TargetFunc(func(ctx context.Context, task scheduledtasks.Task) error {
//		_, err := queue.With(durable.ItemOptions{Unique: task.ID()}).Enqueue(ctx, task)
//		return err
//	})
//
// A queue remembers a Unique id for UniqueFor, by default 24 hours. With Options.Missed or
// RunOnStartup, a task may be handed over late. Then set UniqueFor of the item options to more
// than the longest time without a running process.
//
// With a TargetFunc, a [Definition] needs no Signal: the function gets the task itself.
//
// The function runs once at a time for each schedule. If it starts work that goes on after it has returned,
// [SkipOverlap] does not know that work: the function itself returns [ErrOverlap] to skip a tick. A durable queue
// whose key is Task.Name runs the tasks of a schedule one after the other; with SkipIfAlive in the item options, it
// adds no task while the last one waits or runs, in any process.
type TargetFunc func(ctx context.Context, task Task) error

// Enqueue calls the function. It returns the OperationID 0.
func (f TargetFunc) Enqueue(ctx context.Context, task Task) (core.OperationID, error) {
	return 0, f(ctx, task)
}

// A Store remembers the last tick of each schedule across restarts. Under two more names for each
// schedule, which have a comma, it remembers since when the cron is in force: so a restart knows whether
// the cron was changed or the schedule paused, and runs no such ticks as missed ones. With one cron after
// another, there is a name for each. The stores of
// atoms/durable/postgres and atoms/durable/sqlite are such stores. Methods are called
// concurrently for different schedules. The context of MarkTick ends after [Options.Timeout],
// the context of LastTick after a minute. ResetTick gets the context of the caller.
type Store interface {
	// LastTick returns the latest tick that was marked, or the zero time if there is none.
	LastTick(ctx context.Context, schedule string) (time.Time, error)
	// MarkTick remembers a tick. If a later tick is marked already, it changes nothing.
	MarkTick(ctx context.Context, schedule string, tick time.Time) error
	// ResetTick remembers a time in place of the last tick, even if a later tick is marked.
	ResetTick(ctx context.Context, schedule string, to time.Time) error
}

// Raise is a function for core.NewCoordinator: the operation of a task raises Task.Signal
// with the key Task.Key and the Task as the payload. Listeners subscribe to a
// signals.Kind[Task] of that name. It returns an error if ctx does not belong to an
// operation, or if the signal has no valid name.
//
//	run, err := core.NewCoordinator(scheduledtasks.Raise, core.Options{Sink: sink})
func Raise(ctx context.Context, task Task) error {
	op := core.OperationFrom(ctx)
	if err := plain("signal", task.Signal); op == nil || err != nil {
		return fmt.Errorf("scheduledtasks: Raise needs an operation, and a task with the name of a signal: %v", err)
	}
	signals.NewKind[Task](task.Signal).Raise(op, task.Key, task)
	return nil
}

// Run returns a function for core.NewCoordinator that raises the signal like [Raise] and then
// calls work. If Raise or work returns an error, the function raises [TaskFailed] and
// returns the error. To try again, wrap work: Run(retry.Wrap(r, work)). Run panics if work is
// nil.
func Run(work core.Work[Task]) core.Work[Task] {
	if work == nil {
		panic("scheduledtasks: Run needs a function; use Raise if there is none")
	}
	return func(ctx context.Context, task Task) error {
		err := Raise(ctx, task)
		if err == nil {
			err = work(ctx, task)
		}
		if err != nil {
			TaskFailed.Raise(core.OperationFrom(ctx), task.Name, Failure{Task: task, Err: err})
		}
		return err
	}
}

// The signals. Their key is the name of the schedule. A [Scheduler] raises all but the last on its
// sink.
var (
	Fired   = signals.NewKind[Task]("schedule.fired")         // a task was handed over
	Missed  = signals.NewKind[MissedTicks]("schedule.missed") // ticks were noticed too late: see MissedTicks.Reason
	Skipped = signals.NewKind[Task]("schedule.skipped")       // a tick was skipped: see [SkipOverlap]
	Failed  = signals.NewKind[Failure]("schedule.failed")     // a task was not handed over, or its tick was not marked
	// Stalled: the last tick of a schedule is more than an hour in the future, because the clock was
	// wrong. The schedule waits for a later tick, until [Scheduler.Reset] is called.
	Stalled = signals.NewKind[StalledSchedule]("schedule.stalled")
	// TaskFailed is raised by the operation of a task, in [Run], when the work fails.
	TaskFailed = signals.NewKind[Failure]("schedule.task.failed")
)

// MissedTicks says which ticks of a schedule were missed.
type MissedTicks struct {
	Name  string    `json:"name"`  // of the schedule
	First time.Time `json:"first"` // the oldest
	Count int       `json:"count"` // how many were missed, at most 10,000
	Run   int       `json:"run"`   // how many of them are run late: the newest ones
	// Reason says in words why they were missed: how late the scheduler noticed the oldest, or why it
	// could not hand it over.
	Reason string `json:"reason"`
}

// StalledSchedule is a schedule whose last tick is in the future.
type StalledSchedule struct {
	Name   string    `json:"name"`          // of the schedule
	Last   time.Time `json:"last"`          // the tick that is in the future
	Next   time.Time `json:"next,omitzero"` // the tick for which the schedule waits
	Reason string    `json:"reason"`
}

// A Failure is a task with the error of its hand-over or of its work.
type Failure struct {
	Task  Task  `json:"task"`
	Again bool  `json:"again,omitempty"` // the hand-over is tried again, unless the tick is then too late
	Err   error `json:"-"`
}
