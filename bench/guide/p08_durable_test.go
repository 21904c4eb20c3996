package guide_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // for the time zone of the schedule, if the system has no zones

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/file"
	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
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

func Example_paidAPI() {
	type Question struct {
		Customer string
		Estimate int // of tokens
	}
	ctx, stop := context.WithCancel(context.Background())
	store := durable.Memory() // for tests; a program opens the store of sqlite or postgres
	customer := func(q Question) string { return q.Customer }

	var questions *durable.Queue[Question]
	endpoints := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{ // one for each customer
		Rule: breaker.Options{Threshold: 3, OpenFor: time.Minute},
		Pause: func(ctx context.Context, key string, d time.Duration, reason string) error {
			return questions.Pause(ctx, durable.Pause{Key: key, For: d, Reason: reason, Auto: true})
		},
		Trial: func(ctx context.Context) bool { return durable.ClaimFrom(ctx).Trial },
	}))
	ask := func(ctx context.Context, q Question) error {
		defer stop()  // one question is enough for this example
		tokens := 340 // the answer of the API says what it has cost
		fmt.Println("asked for", q.Customer)
		return durable.Charge(ctx, 0, tokens-q.Estimate) // the difference; less than 0 gives back
	}
	questions = core.Must(durable.New(store, customer, circuitbreaker.WrapKeyed(endpoints, customer, ask), durable.Options{
		Name:    "questions",
		Classes: []durable.Class{{Name: "model", Rate: core.AtMost(60, time.Minute), CostRate: core.PerMinute(10_000)}},
	}))
	defer questions.Close()

	q := Question{"ada", 300}
	core.Must(questions.Class("model").Cost(q.Estimate).Enqueue(ctx, q))
	if err := questions.Run(ctx); err != nil {
		panic(err)
	}
	// Output: asked for ada
}

func Example_flow() {
	ctx := context.Background()
	store := durable.Memory() // for tests; a program opens the store of sqlite or postgres
	ship := func(ctx context.Context, o Order) error {
		shelf, err := flow.Do(ctx, flow.Step[string]{Name: "reserve", Do: func(context.Context) (string, error) {
			fmt.Println("reserve")
			return "shelf 7", nil
		}})
		if err != nil {
			return err // tried again later; "reserve" does not run again
		}
		_, err = flow.Do(ctx, flow.Step[int]{Name: "charge", Do: func(context.Context) (int, error) {
			fmt.Println("charge")
			return 4711, nil
		}, Compensate: func(_ context.Context, receipt int, known bool) error { // not known: perhaps it was charged
			fmt.Println("refund", receipt, known)
			return nil
		}})
		if err != nil {
			return err
		}
		return durable.Permanent(errors.New(shelf + " is empty"))
	}
	orders := core.Must(durable.New(store, func(o Order) string { return o.ID }, ship, durable.Options{Name: "orders"}))
	defer orders.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	go orders.Run(running)

	id := core.Must(orders.Enqueue(ctx, Order{ID: "order-1"}))
	fmt.Println(orders.WaitAll(ctx, id))
	// Output:
	// reserve
	// charge
	// refund 4711 true
	// durable: queue "orders": wait for item 1: durable: item 1 is dead: shelf 7 is empty
}
