package guide_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // for the time zone of the schedule, if the system has no zones

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/file"
	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// Order is the item of the examples.
type Order struct{ ID, Customer string }

func Example_schedule() {
	report := func(ctx context.Context, task scheduledtasks.Task) error {
		fmt.Println("report for", task.Key)
		return nil
	}
	run := core.Must(core.NewCoordinator(scheduledtasks.Run(report), core.Options{Name: "reports"}))
	tasks := core.Must(scheduledtasks.New([]scheduledtasks.Definition{{
		Name: "sales", Cron: "30 2 * * *", TimeZone: "Europe/Vienna",
		Signal: "report.due", Key: "north",
	}}, run, scheduledtasks.Options{Overlap: scheduledtasks.SkipOverlap}))
	both := core.InOrder(tasks, run)
	defer both.Close()

	for task := range tasks.Preview(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), 2) {
		fmt.Println(task.ID())
	}
	ctx := context.Background()
	if err := tasks.RunNow(ctx, "sales"); err != nil {
		panic(err)
	}
	if err := both.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// sales@2026-07-02T00:30:00Z
	// sales@2026-07-03T00:30:00Z
	// report for north
}

func Example_store() {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "guide"))
	defer os.RemoveAll(dir)
	orders := core.Must(file.Open[string](ctx, dir, data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	if err := orders.Save(ctx, "order-1", Order{ID: "order-1", Customer: "ada"}); err != nil {
		panic(err) // if it is nil, the value is on disk
	}
	order, found, err := orders.Load(ctx, "order-1")
	fmt.Println(order.Customer, found, err)
	// Output: ada true <nil>
}

func Example_durable() {
	dir := core.Must(os.MkdirTemp("", "guide"))
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background()) // a program uses signal.NotifyContext
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "shop.db"), sqlitewriter.Options{}))
	defer w.Close()
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	customer := func(o Order) string { return o.Customer }
	ship := func(ctx context.Context, o Order) error {
		fmt.Println("ship", o.ID, "attempt", durable.ClaimFrom(ctx).Attempt)
		stop() // one order is enough for this example
		return nil
	}
	orders := core.Must(durable.New(store, customer, ship, durable.Options{Name: "orders"}))
	defer orders.Close()

	core.Must(orders.Enqueue(ctx, Order{ID: "order-1", Customer: "ada"})) // no error: it is on disk
	if err := orders.Run(ctx); err != nil {
		panic(err)
	}
	// Output: ship order-1 attempt 1
}
