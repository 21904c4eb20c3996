package fromcsharp_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The example shows the library in one function: work, a limit, a gate, and a look at the
// outcome.
func Example_tenSeconds() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	orders := core.Must(core.NewCoordinator(func(ctx context.Context, o order) error {
		if err := ship(ctx, o); err != nil {
			return err
		}
		core.OperationFrom(ctx).Raise("order.shipped")
		return nil
	}, core.Options{MaxConcurrency: 8, Sink: sink, DeferOn: "warehouse.busy"}))
	defer orders.Close()

	core.Must(orders.Enqueue(ctx, order{ID: "order-42"}))
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.ID, op.Err)
	}
	fmt.Println(sink.Count("order.*"), "shipped")
	// Output: 1 shipped
}

// A collection, once.
func Example_forEach() {
	ctx := context.Background()
	items := []string{"a.txt", "b.txt", "broken.txt"}

	err := core.ForEach(ctx, slices.Values(items), process, core.Options{MaxConcurrency: 8})
	fmt.Println(err)
	// Output: broken.txt cannot be processed
}

// Items that arrive over time.
func Example_coordinator() {
	ctx := context.Background()

	coordinator := core.Must(core.NewCoordinator(process, core.Options{
		MaxConcurrency: 8,
		MaxTracked:     200,
		MaxAge:         5 * time.Minute,
		EchoAge:        time.Minute,
		EchoCapacity:   256,
	}))
	defer coordinator.Close()

	for _, item := range []string{"data", "broken.txt"} {
		core.Must(coordinator.Enqueue(ctx, item))
	}
	running := slices.Collect(coordinator.Operations(core.OperationQuery{Status: core.StatusRunning}))
	slog.Debug("at work", "running", running, "pending", coordinator.Stats().Pending)

	if err := coordinator.Drain(ctx); err != nil { // Complete, and wait
		panic(err)
	}
	for op := range coordinator.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Status, "-", op.Err)
	}
	// Output: failed - broken.txt cannot be processed
}

// Items of one key run in order, different keys at the same time.
func Example_keyed() {
	ctx := context.Background()

	orders := core.Must(core.NewKeyedCoordinator(order.customer, ship, core.Options{
		MaxConcurrency: 16,
		MaxPerKey:      1, // the default
	}))
	defer orders.Close()

	for _, o := range []order{
		{ID: "order-1", Customer: "A"},
		{ID: "order-2", Customer: "A"}, // waits for order-1
		{ID: "order-3", Customer: "B"}, // runs beside it
	} {
		core.Must(orders.Enqueue(ctx, o))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	for op := range orders.Operations(core.OperationQuery{Key: "A"}) {
		fmt.Println(op.Key, op.Status)
	}
	// Output:
	// A succeeded
	// A succeeded
}

// A result, by the id of its operation.
func Example_results() {
	ctx := context.Background()

	fetcher := core.Must(core.NewResultCoordinator(fetch, core.Options{MaxConcurrency: 4}))
	defer fetcher.Close()

	id := core.Must(fetcher.Enqueue(ctx, "https://api.example.com"))
	response := core.Must(fetcher.Wait(ctx, id))
	fmt.Println(response)
	// Output: content of https://api.example.com
}

// A future keeps its result; Map returns results in the order of the items.
func Example_futures() {
	ctx := context.Background()
	fetcher := core.Must(core.NewResultCoordinator(fetch, core.Options{MaxConcurrency: 4, MaxTracked: -1}))
	defer fetcher.Close()

	future := core.Must(fetcher.Submit(ctx, "one.example"))
	fmt.Println(future.Wait(ctx)) // works even if the window keeps nothing

	urls := slices.Values([]string{"two.example", "three.example"})
	for content, err := range core.Map(ctx, urls, fetch, core.Options{MaxConcurrency: 4}) {
		fmt.Println(content, err)
	}
	// Output:
	// content of one.example <nil>
	// content of two.example <nil>
	// content of three.example <nil>
}

// The limit may change at any time.
func Example_dynamicConcurrency() {
	coordinator := core.Must(core.NewCoordinator(process, core.Options{MaxConcurrency: 8}))
	defer coordinator.Close()

	// when load increases
	if err := coordinator.SetMaxConcurrency(16); err != nil {
		panic(err)
	}
	fmt.Println(coordinator.Stats().Limit)

	// when throttled; running items go on
	if err := coordinator.SetMaxConcurrency(4); err != nil {
		panic(err)
	}
	fmt.Println(coordinator.Stats().Limit)
	// Output:
	// 16
	// 4
}

// All options.
func Example_options() {
	sharedSink := signals.NewSink(signals.SinkOptions{})

	opts := core.Options{
		Name: "orders", // the Source of its signals

		// how much at once
		MaxConcurrency: 8,
		MaxPerKey:      1, // coordinators with keys only
		MaxQueued:      1024,

		// limits of the window
		MaxTracked:   200,
		MaxAge:       5 * time.Minute,
		EchoCapacity: 256,
		EchoAge:      time.Minute,

		// signals
		Sink:      sharedSink,
		OnSignal:  func(s signals.Signal) { slog.Debug("raised", "signal", s) },
		OnRetract: func(r signals.Retraction) { slog.Debug("taken back", "signal", r.Signal) },
		CancelOn:  "circuit-open, shutting-down",
		DeferOn:   "backpressure.*",
		ResumeOn:  "backpressure-relieved",
		MaxDefer:  5 * time.Second,
		DrainOn:   "drain.all",
	}
	orders := core.Must(core.NewKeyedCoordinator(order.customer, ship, opts))
	defer orders.Close()

	fmt.Println(orders.Name(), "runs", orders.Stats().Limit, "at once")
	// Output: orders runs 8 at once
}

// A window for audits.
func Example_longWindow() {
	opts := core.Options{MaxTracked: 10_000, MaxAge: 24 * time.Hour}

	coordinator := core.Must(core.NewCoordinator(process, opts))
	defer coordinator.Close()
	if err := coordinator.Do(context.Background(), "a.txt"); err != nil {
		panic(err)
	}
	fmt.Println(coordinator.Stats().Tracked, "operation to look at until tomorrow")
	// Output: 1 operation to look at until tomorrow
}

// These functions stand for your code.

type order struct{ ID, Customer string }

func (o order) customer() string { return o.Customer }

func ship(context.Context, order) error { return nil }

func process(_ context.Context, name string) error {
	if name == "broken.txt" {
		return fmt.Errorf("%s cannot be processed", name)
	}
	return nil
}

func fetch(_ context.Context, url string) (string, error) { return "content of " + url, nil }
