package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Functions of a program take the narrowest type that is enough: a producer needs an
// Enqueuer, a status page a Control, its buttons inspect.Actions, a shutdown a Lifecycle, a
// decision a Sensor.
func ExampleControl() {
	produce := func(ctx context.Context, to core.Enqueuer[int]) error {
		_, err := to.Enqueue(ctx, 1)
		return err
	}
	show := func(c core.Control) {
		fmt.Println(c.Name(), c.Stats().Succeeded)
		for _, lane := range c.Stats().Lanes {
			printLane(lane)
		}
	}
	button := func(c inspect.Actions) error { return c.SetMaxConcurrency(8) }
	ready := func(s signals.Sensor) bool { return s.Has("warm") }
	finish := func(ctx context.Context, part core.Lifecycle) error { return part.Drain(ctx) }

	jobs := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
		core.OperationFrom(ctx).Raise("warm")
		return nil
	}, core.Options{Name: "jobs", Lanes: []core.Lane{{Name: "normal", Limit: 2}}}))

	ctx := context.Background()
	if err := produce(ctx, jobs); err != nil {
		panic(err)
	}
	if err := jobs.WaitIdle(ctx); err != nil {
		panic(err)
	}
	show(jobs.Control)
	fmt.Println(ready(jobs), button(jobs))
	fmt.Println(finish(ctx, jobs), jobs.Close())
	// Output:
	// jobs 1
	// lane normal: 0 of 2 run
	// true <nil>
	// <nil> <nil>
}

func printLane(l core.LaneStats) {
	fmt.Printf("lane %s: %d of %d run\n", l.Name, l.Running, l.Limit)
}

// A function around the work has the item and the context.
func ExampleWork() {
	checked := func(next core.Work[int]) core.Work[int] {
		return func(ctx context.Context, n int) error {
			if n < 0 {
				return fmt.Errorf("%d is negative", n)
			}
			return next(ctx, n)
		}
	}
	doubled := func(next core.ResultWork[int, int]) core.ResultWork[int, int] {
		return func(ctx context.Context, n int) (int, error) {
			out, err := next(ctx, n)
			return 2 * out, err
		}
	}

	ctx := context.Background()
	plain := core.Must(core.NewCoordinator(checked(func(context.Context, int) error { return nil }), core.Options{}))
	defer plain.Close()
	fmt.Println(plain.Do(ctx, -1))

	squares := core.Must(core.NewResultCoordinator(doubled(func(_ context.Context, n int) (int, error) { return n * n, nil }), core.Options{}))
	defer squares.Close()
	fmt.Println(squares.Do(ctx, 3))
	// Output:
	// -1 is negative
	// 18 <nil>
}

// A panic in a body is an error of its operation.
func ExamplePanicError() {
	c := core.Must(core.NewCoordinator(func(_ context.Context, n int) error {
		_ = []int{}[n]
		return nil
	}, core.Options{}))
	defer c.Close()

	err := c.Do(context.Background(), 7)
	if panicked, ok := errors.AsType[*core.PanicError](err); ok {
		fmt.Println(panicked)
	}
	// Output: core: operation panicked: runtime error: index out of range [7] with length 0
}

// An echo is the rest of an operation that has left the window.
func ExampleEcho() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
		core.OperationFrom(ctx).Raise(fmt.Sprint("done.", n))
		return nil
	}, core.Options{MaxConcurrency: 1, MaxTracked: 1}))
	defer c.Close()

	for n := range 2 {
		if err := c.Do(context.Background(), n); err != nil {
			panic(err)
		}
	}
	print := func(e core.Echo) { fmt.Println(e.Status, e.Signals[0].Name) }
	for e := range c.Echoes(signals.Query{}) {
		print(e)
	}
	// Output: succeeded done.0
}

// An item is deferred while a signal is present, but not for longer than MaxDefer.
func ExampleOptions_maxDefer() {
	sink := signals.NewSink(signals.SinkOptions{})
	work := func(_ context.Context, item string) error { return nil }
	c := core.Must(core.NewKeyedCoordinator(func(item string) string { return item }, work,
		core.Options{Sink: sink, DeferOn: "api.slow", MaxDefer: time.Millisecond}))
	defer c.Close()
	defer sink.Subscribe(core.SignalForced, func(s signals.Signal) { fmt.Println(s.Name, s.Key) })()

	sink.Raise("api.slow")
	fmt.Println(c.Do(context.Background(), "a.csv"))
	// Output:
	// coordinator.forced a.csv
	// <nil>
}

// Count the reasons why pending operations wait.
func ExampleReasonKind() {
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{}))
	defer c.Close()
	c.Pause()
	for n := range 3 {
		core.Must(c.TryEnqueue(context.Background(), n))
	}

	count := make(map[core.ReasonKind]int)
	for op := range c.Operations(core.OperationQuery{Status: core.StatusPending}) {
		why, _ := c.Explain(op.ID)
		for _, reason := range why.Reasons {
			count[reason.Kind]++
		}
	}
	fmt.Println(count[core.ReasonPaused], "paused,", count[core.ReasonOrder], "behind others")
	// Output: 3 paused, 2 behind others
}

// A handler with what surrounds it.
func ExampleHandler() {
	counted := 0
	count := func(next core.Handler) core.Handler {
		return func(ctx context.Context, s signals.Signal) error {
			counted++
			return next(ctx, s)
		}
	}
	p := core.Must(core.NewProcessor(count(func(_ context.Context, s signals.Signal) error {
		fmt.Println(s.Name)
		return nil
	}), core.Options{MaxConcurrency: 1}))
	defer p.Close()

	sink := signals.NewSink(signals.SinkOptions{})
	defer sink.Subscribe("*", p.Process)()
	sink.Raise("file.saved")
	if err := p.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(counted)
	// Output:
	// file.saved
	// 1
}

// Some items on a coordinator that others use as well.
func ExampleCoordinator_Group() {
	pool := core.Must(core.NewCoordinator(func(ctx context.Context, page string) error {
		if page == "broken" {
			return fmt.Errorf("%s cannot be read", page)
		}
		return nil
	}, core.Options{MaxConcurrency: 4}))
	defer pool.Close()

	ctx := context.Background()
	read := func(group *core.Group[string], pages ...string) error {
		for _, page := range pages {
			if _, err := group.Enqueue(ctx, page); err != nil {
				return err
			}
		}
		return group.Wait()
	}
	fmt.Println(read(pool.Group(ctx, core.GroupOptions{}), "index", "broken", "about"))
	// Output:
	// broken cannot be read
}

func ExampleInOrder() {
	save := core.Must(core.NewCoordinator(func(ctx context.Context, page string) error {
		fmt.Println("saved", page)
		return nil
	}, core.Options{}))
	fetch := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		_, err := save.Enqueue(ctx, "page of "+url)
		return err
	}, core.Options{}))
	pipeline := core.InOrder(fetch, save)
	defer pipeline.Close()

	ctx := context.Background()
	core.Must(fetch.Enqueue(ctx, "example.com"))
	if err := pipeline.Drain(ctx); err != nil { // first fetch, then save
		panic(err)
	}
	// Output: saved page of example.com
}

// The order of the last calls: Shutdown, list what failed, Close.
func ExampleShutdown() {
	save := core.Must(core.NewCoordinator(func(ctx context.Context, page string) error {
		if page == "page of example.org" {
			return errors.New("disk full")
		}
		fmt.Println("saved", page)
		return nil
	}, core.Options{Name: "save"}))
	fetch := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		_, err := save.Enqueue(ctx, "page of "+url)
		return err
	}, core.Options{Name: "fetch"}))
	for _, url := range []string{"example.com", "example.org"} {
		core.Must(fetch.Enqueue(context.Background(), url))
	}

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := core.Shutdown(ctx, fetch, save); err != nil { // first fetch, then save
		panic(err)
	}
	for op := range save.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Item, "failed:", op.Err)
	}
	save.Close() // empties the window
	fmt.Println(save.Stats().Failed, "failed")
	// Unordered output:
	// saved page of example.com
	// page of example.org failed: disk full
	// 1 failed
}

// The gates of a coordinator say which signals hold up its items now, and how many signals
// have ever matched. A gate that nothing has ever matched may have a misspelt pattern.
func ExampleControl_Gates() {
	sink := signals.NewSink(signals.SinkOptions{})
	uploads := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil },
		core.Options{Name: "uploads", Sink: sink, DeferOn: "disk.full", CancelOn: "upload.stop"})) //ephemeral:ignore
	defer uploads.Close()

	sink.Raise("uploads.stop") // with an "s" that CancelOn has not
	defer sink.Hold("disk.full", "sda1", 0)()
	var gate core.GateStatus
	for _, gate = range uploads.Gates() {
		fmt.Println(gate.Kind, gate.Pattern, gate.Closed, gate.Matches)
	}
	// Output:
	// refused upload.stop false 0
	// deferred disk.full true 1
}

// A limit of 500 calls a minute, of which 10 may begin at once.
func ExamplePerMinute() {
	rate := core.PerMinute(500)
	rate.Burst = 10
	fmt.Printf("%.2f a second, a burst of %d\n", rate.PerSecond, rate.Burst)
	// Output: 8.33 a second, a burst of 10
}

// The server allows no more than 10 calls in any minute. So they begin 6 seconds apart.
func ExampleAtMost() {
	rate := core.AtMost(10, time.Minute)
	fmt.Printf("one every %.0f s, a burst of %d\n", 1/rate.PerSecond, rate.Burst)
	// Output: one every 6 s, a burst of 1
}

// The first call of Times begins to count. In the last hour, three orders have ended, two of
// them in the lane hot.
func ExampleControl_Times() {
	ship := func(context.Context, string) error { return nil }
	orders := core.Must(core.NewCoordinator(ship, core.Options{Lanes: []core.Lane{{Name: "hot"}, {Name: "normal"}}}))
	defer orders.Close()
	orders.Times(0)
	for i, lane := range []string{"hot", "normal", "hot"} {
		if err := orders.Lane(lane).Do(context.Background(), fmt.Sprint("A-", i)); err != nil {
			panic(err)
		}
	}
	show := func(t core.Times) {
		fmt.Printf("%q: %d waited, half of them less than a second: %v\n", t.Lane, t.Waiting.Count(), t.Waiting.Quantile(0.5).Seconds() < 1)
	}
	for _, t := range orders.Times(0) {
		show(t)
	}
	// Output:
	// "": 3 waited, half of them less than a second: true
	// "hot": 2 waited, half of them less than a second: true
	// "normal": 1 waited, half of them less than a second: true
}
