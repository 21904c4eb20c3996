package scheduledtasks_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	reportDue := signals.NewKind[scheduledtasks.Task]("report.due")
	reportDue.Subscribe(sink, func(s signals.Signal, task scheduledtasks.Task) {
		fmt.Println(s.Name, s.Key, string(task.Payload)) // report.due sales {"file": "sales.csv"}
	})
	run := core.Must(core.NewCoordinator(scheduledtasks.Raise, core.Options{Sink: sink}))
	definitions := core.Must(scheduledtasks.Parse([]byte(`[{
		"name": "report", "cron": "30 2 * * *", "timeZone": "UTC",
		"signal": "report.due", "key": "sales", "payload": {"file": "sales.csv"}
	}]`)))
	tasks, err := scheduledtasks.New(definitions, run, scheduledtasks.Options{Sink: sink, Missed: scheduledtasks.RunOnce})
	if err != nil { // scheduledtasks.Load("schedule.json", run, ...) reads a file
		panic(err)
	}
	defer tasks.Close()

	ctx := context.Background()
	for task := range tasks.Preview(time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC), 2) {
		fmt.Println(task.ID()) // report@2026-10-25T02:30:00Z, then report@2026-10-26T02:30:00Z
	}
	if err := tasks.RunNow(ctx, "report"); err != nil {
		panic(err)
	}
	if err := tasks.WaitIdle(ctx); err != nil { // waits for the coordinator, too
		panic(err)
	}
	// Output:
	// report@2026-10-25T02:30:00Z
	// report@2026-10-26T02:30:00Z
	// report.due sales {"file": "sales.csv"}
}

// A queue that accepts an id once makes one task of each tick, in any number of processes.
func ExampleTargetFunc() {
	queue := map[string]scheduledtasks.Task{} // a table with a unique column
	var target scheduledtasks.Target = scheduledtasks.TargetFunc(func(ctx context.Context, task scheduledtasks.Task) error {
		queue[task.ID()] = task
		fmt.Println("queued", task.Name)
		return nil
	})
	tasks, err := scheduledtasks.New([]scheduledtasks.Definition{{Name: "cleanup", Cron: "@daily", Signal: "cleanup.due"}},
		target, scheduledtasks.Options{})
	if err != nil {
		panic(err)
	}
	defer tasks.Close()
	if err := tasks.RunNow(context.Background(), "cleanup"); err != nil {
		panic(err)
	}
	var s scheduledtasks.Schedule = tasks.Schedules()[0]
	fmt.Println(s.Definition.Name, s.Next.Format(time.TimeOnly))
	// Output:
	// queued cleanup
	// cleanup 00:00:00
}

// file is a Store; a real one keeps the ticks on disk.
type file map[string]time.Time

func (f file) LastTick(_ context.Context, schedule string) (time.Time, error) {
	return f[schedule], nil
}

func (f file) MarkTick(_ context.Context, schedule string, tick time.Time) error {
	f[schedule] = tick
	return nil
}

func (f file) ResetTick(_ context.Context, schedule string, to time.Time) error {
	f[schedule] = to
	return nil
}

// With a store, ticks that came while no process ran are missed ticks.
func ExampleStore() {
	var store scheduledtasks.Store = file{"leap": time.Date(2016, 2, 29, 3, 17, 0, 0, time.UTC)}
	done := make(chan struct{})
	sink := signals.NewSink(signals.SinkOptions{})
	scheduledtasks.Missed.Subscribe(sink, func(s signals.Signal, m scheduledtasks.MissedTicks) {
		fmt.Println(s.Key, "missed since", m.First.Year(), "- late runs:", m.Run)
	})
	tasks, err := scheduledtasks.New([]scheduledtasks.Definition{{Name: "leap", Cron: "17 3 29 2 *", Signal: "leap.due"}},
		scheduledtasks.TargetFunc(func(context.Context, scheduledtasks.Task) error { close(done); return nil }),
		scheduledtasks.Options{Sink: sink, Store: store, Missed: scheduledtasks.RunOnce})
	if err != nil {
		panic(err)
	}
	defer tasks.Close()
	<-done
	// Output: leap missed since 2020 - late runs: 1
}

// The clock was ten years ahead when a schedule ran last, so it waits for long, until it is reset.
func ExampleScheduler_Reset() {
	sink := signals.NewSink(signals.SinkOptions{})
	scheduledtasks.Stalled.Subscribe(sink, func(s signals.Signal, a scheduledtasks.StalledSchedule) {
		fmt.Println(s.Key, "waits,", a.Next.Year()-time.Now().Year(), "years")
	})
	store := file{"cleanup": time.Now().AddDate(10, 0, 0)}
	tasks, err := scheduledtasks.New([]scheduledtasks.Definition{{Name: "cleanup", Cron: "@yearly", Signal: "cleanup.due"}},
		scheduledtasks.TargetFunc(func(context.Context, scheduledtasks.Task) error { return nil }), scheduledtasks.Options{Sink: sink, Store: store})
	if err != nil {
		panic(err)
	}
	defer tasks.Close()
	if err := tasks.Reset(context.Background(), "cleanup"); err != nil {
		panic(err)
	}
	fmt.Println(tasks.Schedules()[0].Next.Year()-time.Now().Year(), "year left")
	// Output:
	// cleanup waits, 11 years
	// 1 year left
}

// A task stays in the coordinator's window until a signal acknowledges it.
func ExampleRun() {
	sink := signals.NewSink(signals.SinkOptions{})
	var keeper *responsibility.Keeper
	run, err := core.NewCoordinator(scheduledtasks.Run(func(ctx context.Context, task scheduledtasks.Task) error {
		if task.Name == "bad" {
			return errors.New("no such file")
		}
		keeper.Keep(core.OperationFrom(ctx).ID(), responsibility.Promise{Ack: task.Signal + ".ack", Key: task.Key})
		return nil
	}), core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	if keeper, err = responsibility.New(run, sink, responsibility.Options{}); err != nil {
		panic(err)
	}
	defer keeper.Close()
	scheduledtasks.TaskFailed.Subscribe(sink, func(s signals.Signal, f scheduledtasks.Failure) {
		fmt.Println("failed:", s.Key, f.Err)
	})
	tasks, err := scheduledtasks.New([]scheduledtasks.Definition{
		{Name: "import", Cron: "@hourly", Signal: "import.due", Key: "a.csv"},
		{Name: "bad", Cron: "@hourly", Signal: "import.due", Key: "b.csv"},
	}, run, scheduledtasks.Options{})
	if err != nil {
		panic(err)
	}
	defer tasks.Close()

	ctx := context.Background()
	for _, name := range []string{"import", "bad"} {
		if err := tasks.RunNow(ctx, name); err != nil {
			panic(err)
		}
	}
	if err := tasks.WaitIdle(ctx); err != nil {
		panic(err)
	}
	fmt.Println(keeper.Len(), "kept")
	sink.RaiseKey("import.due.ack", "a.csv")
	fmt.Println(keeper.Len(), "kept")
	fmt.Println(tasks.Stats().Succeeded, "handed over")
	// Output:
	// failed: bad no such file
	// 1 kept
	// 0 kept
	// 2 handed over
}

// Preview shows the next tasks, and RunNow runs one without waiting for its time.
func ExampleScheduler_Preview() {
	tasks := core.Must(scheduledtasks.New(
		[]scheduledtasks.Definition{{Name: "sales", Cron: "30 2 * * *", TimeZone: "Europe/Vienna", Key: "north"}},
		scheduledtasks.TargetFunc(func(_ context.Context, task scheduledtasks.Task) error {
			fmt.Println("report for", task.Key)
			return nil
		}), scheduledtasks.Options{}))
	defer tasks.Close()

	for task := range tasks.Preview(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), 2) {
		fmt.Println(task.ID())
	}
	fmt.Println(tasks.RunNow(context.Background(), "sales"))
	// Output:
	// sales@2026-07-02T00:30:00Z
	// sales@2026-07-03T00:30:00Z
	// report for north
	// <nil>
}

// A paused schedule hands over nothing until Resume. The pattern selects schedules by name.
func ExampleScheduler_Pause() {
	definitions := core.Must(scheduledtasks.Parse([]byte(`[
		{"name": "report.north", "cron": "@daily", "signal": "report.due"},
		{"name": "report.south", "cron": "@daily", "signal": "report.due"},
		{"name": "cleanup", "cron": "@hourly", "signal": "cleanup.due"}
	]`)))
	run := core.Must(core.NewCoordinator(scheduledtasks.Raise, core.Options{}))
	tasks := core.Must(scheduledtasks.New(definitions, run, scheduledtasks.Options{}))
	defer tasks.Close()

	fmt.Println(tasks.Pause("report.*"), "paused")
	fmt.Println(tasks.Resume("report.north"), "resumed")
	// Output:
	// 2 paused
	// 1 resumed
}

// A schedule has options of its own, in code or in JSON.
func ExampleOverlap() {
	definitions, err := scheduledtasks.Parse([]byte(`[{
		"name": "report", "cron": "@hourly", "signal": "report.due", "overlap": "skip", "timeout": "30s"
	}]`))
	if err != nil {
		panic(err)
	}
	fmt.Println(definitions[0].Overlap == scheduledtasks.SkipOverlap, definitions[0].Timeout)
	// Output: true 30s
}
