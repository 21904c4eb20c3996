package scheduledtasks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Task is one firing of a schedule: what its [Definition] says, and which tick it is for.
type Task struct {
	Name        string          `json:"name"` // of the schedule
	Signal      string          `json:"signal"`
	Key         string          `json:"key,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Description string          `json:"description,omitempty"`
	ScheduledAt time.Time       `json:"scheduledAt"` // the tick, or when RunNow was called; in UTC
}

// ID identifies the task: the name of the schedule, "@", and the tick. A task that is handed
// over twice has the same ID both times, in any process.
func (t Task) ID() string { return t.Name + "@" + t.ScheduledAt.UTC().Format(time.RFC3339Nano) }

// A Target accepts tasks. A *core.Coordinator[Task] is one.
//
// Other methods of a coordinator are used if the Target has them: Lookup for
// [Options.SkipOverlap], and WaitIdle for that of the scheduler.
type Target interface {
	Enqueue(ctx context.Context, task Task) (core.OperationID, error)
}

// A TargetFunc is a function that accepts tasks, as a Target. It is a [core.Work], so
// middleware such as retry.Wrap can wrap it. With a queue of package durable each tick becomes
// one item, in any number of processes, also if the function is called again:
//
//	scheduledtasks.TargetFunc(func(ctx context.Context, task scheduledtasks.Task) error {
//		_, err := queue.With(durable.ItemOptions{Unique: task.ID()}).Enqueue(ctx, task)
//		return err
//	})
//
// A tick that is handed over late must not find its id forgotten: with Options.Missed or
// RunOnStartup, set UniqueFor of the item options to more than the longest time in which a
// process may be down. It is 24 hours by default.
type TargetFunc func(ctx context.Context, task Task) error

// Enqueue calls the function. The id is 0.
func (f TargetFunc) Enqueue(ctx context.Context, task Task) (core.OperationID, error) {
	return 0, f(ctx, task)
}

// A Store remembers the last tick of each schedule across restarts, by the name of the
// schedule. The stores of atoms/durable/postgres and atoms/durable/sqlite are such stores. Its
// methods are called for several schedules at once, with a context that [Options.Timeout] bounds.
type Store interface {
	// LastTick returns the tick that was marked last, or the zero time.
	LastTick(ctx context.Context, schedule string) (time.Time, error)
	// MarkTick remembers a tick, unless it remembers a later one.
	MarkTick(ctx context.Context, schedule string, tick time.Time) error
}

// Raise is the work of a coordinator of tasks whose signals are all there is to do: the
// operation of the task raises Task.Signal, with Task.Key, and the Task as the payload.
// Listeners get it from a core.Kind[Task] of that name.
//
//	run, err := core.NewCoordinator(scheduledtasks.Raise, core.Options{Sink: sink})
func Raise(ctx context.Context, task Task) error {
	op := core.OperationFrom(ctx)
	if err := plain("signal", task.Signal); op == nil || err != nil {
		return fmt.Errorf("scheduledtasks: Raise needs an operation, and a task with the name of a signal: %v", err)
	}
	core.NewKind[Task](task.Signal).Raise(op, task.Key, task)
	return nil
}

// Run returns work that does what [Raise] does and then calls work. If that returns an
// error, it raises [SignalTaskFailed]. To try again, wrap work: Run(retry.Wrap(r, work)).
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
			TaskFailed.Raise(core.OperationFrom(ctx), task.Name, Failure{task, err})
		}
		return err
	}
}

// Signals that a [Scheduler] raises on its sink, with the name of the schedule as key.
const (
	SignalFired   = "schedule.fired"   // a task was handed over
	SignalMissed  = "schedule.missed"  // ticks were noticed too late
	SignalSkipped = "schedule.skipped" // the last task was not finished: see [Options.SkipOverlap]
	SignalFailed  = "schedule.failed"  // a task was not handed over, or its tick not marked

	// SignalTaskFailed is raised by the operation of a task, in [Run], when the work fails.
	SignalTaskFailed = "schedule.task.failed"
)

// Kinds of the signals.
var (
	Fired      = core.NewKind[Task](SignalFired)
	Missed     = core.NewKind[MissedTicks](SignalMissed)
	Skipped    = core.NewKind[Task](SignalSkipped)
	Failed     = core.NewKind[Failure](SignalFailed)
	TaskFailed = core.NewKind[Failure](SignalTaskFailed)
)

// MissedTicks says which ticks of a schedule were missed.
type MissedTicks struct {
	Name  string    `json:"name"`  // of the schedule
	First time.Time `json:"first"` // the oldest
	Count int       `json:"count"` // how many; 10,000 if there are more
	Run   int       `json:"run"`   // of these, how many are run late: the newest
}

// A Failure is a task, and what went wrong with it.
type Failure struct {
	Task Task  `json:"task"`
	Err  error `json:"-"`
}
