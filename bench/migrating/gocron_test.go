package migrating_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example_gocronBefore() {
	reported := make(chan string, 1)
	report := func(region string) { reported <- region }
	tasks := core.Must(gocron.NewScheduler(gocron.WithLocation(time.UTC)))
	job := core.Must(tasks.NewJob(gocron.CronJob("30 2 * * *", false), gocron.NewTask(report, "north"),
		gocron.WithName("sales"), gocron.WithSingletonMode(gocron.LimitModeReschedule)))
	tasks.Start()
	check(job.RunNow())
	fmt.Println(<-reported, core.Must(job.NextRun()).Format("15:04"))
	check(tasks.Shutdown())
	// Output: north 02:30
}

func Example_gocronAfter() {
	ctx := context.Background()
	report := func(_ context.Context, task scheduledtasks.Task) error { fmt.Println(task.Key); return nil }
	run := core.Must(core.NewCoordinator(scheduledtasks.Run(report), core.Options{}))
	tasks := core.Must(scheduledtasks.New([]scheduledtasks.Definition{
		{Name: "sales", Cron: "30 2 * * *", Signal: "report.due", Key: "north"},
	}, run, scheduledtasks.Options{Overlap: scheduledtasks.SkipOverlap}))
	both := core.InOrder(tasks, run)
	defer both.Close()
	check(tasks.RunNow(ctx, "sales"))
	check(both.Drain(ctx))
	for task := range tasks.Preview(time.Now(), 1) {
		fmt.Println(task.ScheduledAt.Format("15:04"))
	}
	// Output:
	// north
	// 02:30
}
