package fromcsharp_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Coordinators that share a sink see the signals of each other.
func Example_sharedSink() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	opts := core.Options{Sink: sink, CancelOn: "system.busy"} // these options are for items of any type

	numbers := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, opts))
	defer numbers.Close()
	words := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, opts))
	defer words.Close()

	sink.Raise("system.busy")
	fmt.Println(numbers.Do(ctx, 1))
	fmt.Println(words.Do(ctx, "one"))
	// Output:
	// core: refused because of signal "system.busy"
	// core: refused because of signal "system.busy"
}

// Signals of payments decide how to process an order.
func Example_crossAwareness() {
	ctx := context.Background()
	facts := signals.NewSink(signals.SinkOptions{Capacity: 1000})
	opts := core.Options{Sink: facts}

	orders := core.Must(core.NewCoordinator(takeOrder, opts))
	defer orders.Close()
	payments := core.Must(core.NewCoordinator(takePayment, opts))
	defer payments.Close()
	retries := core.Must(core.NewCoordinator(takeOrder, core.Options{}))
	defer retries.Close()

	submit := func(ctx context.Context, id string) error {
		to := orders
		if facts.Has("gateway-error") {
			to = retries
		}
		_, err := to.Enqueue(ctx, id)
		return err
	}

	fmt.Println(payments.Do(ctx, "order-1"))
	fmt.Println(submit(ctx, "order-2"))
	fmt.Println(retries.Stats().Enqueued, "to be tried again")
	// Output:
	// the gateway does not answer
	// <nil>
	// 1 to be tried again
}

// All code can raise signals on a sink and sense them.
func Example_sink() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 1000, MaxAge: 2 * time.Minute})

	sink.Raise("system-maintenance") // from anywhere
	sink.RaiseKey("cache.miss", "user-7")

	if sink.Has("system-maintenance") { // Detect
		fmt.Println("not now")
	}
	for s := range sink.Sense(signals.Query{Pattern: "cache.*", Key: "user-7"}) {
		fmt.Println(s.Name)
	}
	sink.Resize(5000, 10*time.Minute) // UpdateWindowSize
	stats := sink.Stats()
	fmt.Println(stats.Stored, "of", stats.Capacity)
	// Output:
	// not now
	// cache.miss
	// 2 of 5000
}

// The pattern language, the same everywhere.
func Example_patterns() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Raise("rate-limit")
	sink.Raise("http.timeout")
	sink.Raise("error.payment.critical")
	sink.Raise("user-123-failed")

	fmt.Println(sink.Has("rate-limit"))       // exact
	fmt.Println(sink.Has("http.*"))           // http.timeout, http.error
	fmt.Println(sink.Has("error.*.critical")) // error.payment.critical
	fmt.Println(sink.Has("user-???-failed"))  // user-123-failed
	fmt.Println(sink.Has("system-overload, circuit-open, error.*"))

	fmt.Println(signals.Match("http.error:5??", "http.error:503")) // Match also works on your own text
	// Output:
	// true
	// true
	// true
	// true
	// true
	// true
}

// Chains of causes are bounded.
func Example_constraints() {
	sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{
		MaxDepth: 10,
		Terminal: "completed, failed, resolved", // end a chain
		Leaf:     "logged, metric",              // these signals report, and cause nothing
		OnBlocked: func(s signals.Signal, why signals.BlockReason) {
			fmt.Println("blocked:", strings.Join(s.Path(), " -> "), "-", why)
		},
	}})
	sink.Subscribe("order-placed", func(s signals.Signal) {
		sink.Because(s).Raise("inventory-reserved")
	})
	sink.Subscribe("inventory-reserved", func(s signals.Signal) {
		sink.Because(s).Raise("order-placed")
	})

	sink.Raise("order-placed")
	// Output: blocked: order-placed -> inventory-reserved -> order-placed - cycle
}

// A signal has its causes.
func Example_because() {
	sink := signals.NewSink(signals.SinkOptions{})
	handle := func(s signals.Signal, on signals.Raiser) {
		if s.Name == "order-placed" {
			on.Because(s).RaiseKey("inventory-reserved", s.Key) // returns false if the signal was blocked
		}
	}
	sink.Subscribe("*", func(s signals.Signal) { handle(s, sink) })

	sink.RaiseKey("order-placed", "order-7")
	for s := range sink.Sense(signals.Query{Pattern: "inventory-*"}) {
		fmt.Println(s.Key, strings.Join(s.Path(), " -> "))
	}
	// Output: order-7 order-placed -> inventory-reserved
}

// A kind gives a signal a payload with a checked type.
func Example_kind() {
	type evidence struct {
		User  string
		Score float64
	}
	BotEvidence := signals.NewKind[evidence]("bot.evidence") // usually a package variable

	sink := signals.NewSink(signals.SinkOptions{})
	BotEvidence.Subscribe(sink, func(s signals.Signal, e evidence) {
		fmt.Println(e.User, "scores", e.Score)
	})
	BotEvidence.Raise(sink, "user-123", evidence{User: "user-123", Score: 0.9})

	fmt.Println(sink.Count("bot.*")) // it is an ordinary signal, too
	for _, e := range BotEvidence.Sense(sink, signals.Query{Within: time.Minute}) {
		fmt.Println(e.User)
	}
	// Output:
	// user-123 scores 0.9
	// 1
	// user-123
}

// A loop over new signals, at most one a second.
func Example_throttle() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sink := busySink(ctx)

	var last time.Time
	for s := range sink.Watch(ctx, "rate-limit:*") { // a second value counts missed signals
		if s.Time.Sub(last) < time.Second {
			continue
		}
		last = s.Time
		fmt.Println(s.Name)
		break // the end of ctx would also end the loop
	}
	// Output: rate-limit:500ms
}

// The scope of a raiser is part of the name.
func Example_scopes() {
	sink := signals.NewSink(signals.SinkOptions{})

	router := sink.Scoped("workflow", "coordinator", "Router")
	router.Raise("route.assigned")

	for s := range sink.Sense(signals.Query{Pattern: "workflow.*.Router.*"}) {
		fmt.Println(s.Name)
	}
	// Output: workflow.coordinator.Router.route.assigned
}

// These functions stand for your code.

func takeOrder(context.Context, string) error { return nil }

func takePayment(ctx context.Context, _ string) error {
	core.OperationFrom(ctx).Raise("gateway-error")
	return fmt.Errorf("the gateway does not answer")
}

// busySink returns a sink on which the same signal is raised all the time.
func busySink(ctx context.Context) *signals.Sink {
	sink := signals.NewSink(signals.SinkOptions{})
	go func() {
		for ctx.Err() == nil {
			sink.Raise("rate-limit:500ms")
			time.Sleep(time.Millisecond)
		}
	}()
	return sink
}
