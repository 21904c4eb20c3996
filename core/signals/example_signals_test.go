package signals_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// One part of a program leaves a fact on a sink. Another part reads it when it needs it.
// The parts do not know each other.
func ExampleSink() {
	facts := signals.NewSink(signals.SinkOptions{Capacity: 1000, MaxAge: 2 * time.Minute})

	facts.RaiseKey("rate-limit:5000ms", "payments-api")
	facts.RaiseKey("http.error:503", "search-api")

	fmt.Println("any rate limit:", facts.Has("rate-limit:*"))
	fmt.Println("server errors:", facts.Count("http.error:5??"))
	for s := range facts.Sense(signals.Query{Key: "payments-api"}) {
		delay, _ := signals.ParseRetryAfter(s.Name)
		fmt.Println(s.Key, "wants", delay)
	}
	// Output:
	// any rate limit: true
	// server errors: 1
	// payments-api wants 5s
}

// A held fact is a condition: it stays until it is released. Use it to gate work.
func ExampleSink_Hold() {
	facts := signals.NewSink(signals.SinkOptions{Capacity: 10})

	release := facts.Hold("update.in-progress", "prices", time.Minute)
	for range 1000 {
		facts.Raise("price.read")
	}
	fmt.Println("updating:", facts.Has("update.in-progress"))
	release()
	fmt.Println("updating:", facts.Has("update.in-progress"))
	// Output:
	// updating: true
	// updating: false
}

// Handlers run where the signal is raised, before Raise returns.
func ExampleSink_Subscribe() {
	facts := signals.NewSink(signals.SinkOptions{})
	cancel := facts.Subscribe("error.*, timeout", func(s signals.Signal) {
		fmt.Println("alert:", s.Name, s.Key)
	})
	facts.RaiseKey("error.payment", "order-7")
	facts.Raise("payment.accepted")
	cancel()
	facts.Raise("timeout")
	// Output:
	// alert: error.payment order-7
}

// Signals that matter to all parts are forwarded to a shared sink. A held fact is held
// there until it is released at its origin.
func ExampleSink_Forward() {
	orders, everybody := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
	cancel := orders.Forward(everybody, "order.failed, stock.*")
	defer cancel()

	orders.Raise("order.placed")
	orders.RaiseKey("order.failed", "order-7")
	release := orders.Hold("stock.counting", "warehouse-1", time.Hour)

	for s := range everybody.Sense(signals.Query{}) {
		fmt.Println(s.Name, s.Key)
	}
	release()
	fmt.Println("counting:", everybody.Has("stock.counting"))
	// Output:
	// order.failed order-7
	// stock.counting warehouse-1
	// counting: false
}

// WaitFor returns at once if the fact is there, and waits for it if not.
func ExampleSink_WaitFor() {
	facts := signals.NewSink(signals.SinkOptions{})
	go facts.RaiseKey("cache.warm", "prices")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := facts.WaitFor(ctx, "cache.warm")
	fmt.Println(s.Name, s.Key, err)
	// Output:
	// cache.warm prices <nil>
}

// A chain of causes can be seen, and cannot become a circle.
func ExampleSink_Because() {
	facts := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{
		OnBlocked: func(s signals.Signal, why signals.BlockReason) {
			fmt.Println("blocked:", strings.Join(s.Path(), " -> "), "because of a", why)
		},
	}})
	facts.Subscribe("order.placed", func(s signals.Signal) { facts.Because(s).Raise("stock.reserved") })
	facts.Subscribe("stock.reserved", func(s signals.Signal) {
		fmt.Println(strings.Join(s.Path(), " -> "))
		facts.Because(s).Raise("order.placed")
	})
	facts.Raise("order.placed")
	// Output:
	// order.placed -> stock.reserved
	// blocked: order.placed -> stock.reserved -> order.placed because of a cycle
}

// A scope puts the raiser into the name; "*" stands for all of a part.
func ExampleSink_Scoped() {
	facts := signals.NewSink(signals.SinkOptions{})
	facts.Scoped("request", "gateway", "ResizeImage").Raise("started")
	facts.Scoped("request", "gateway", "*").Raise("batch.completed")
	facts.Scoped("request", "search", "Query").Raise("started")

	for s := range facts.Sense(signals.Query{Pattern: "request.gateway.*"}) {
		fmt.Println(s.Name)
	}
	// Output:
	// request.gateway.ResizeImage.started
	// request.gateway.*.batch.completed
}

// Watch is a loop over the signals from now on. It never makes a raiser wait: a loop that
// is too slow is told how many signals it missed.
func ExampleSink_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	facts := signals.NewSink(signals.SinkOptions{})
	go func() {
		for ctx.Err() == nil {
			facts.Raise("heartbeat")
			time.Sleep(time.Millisecond)
		}
	}()
	beats := 0
	for s := range facts.Watch(ctx, "heartbeat") { // a second value tells how many were missed
		fmt.Println(s.Name)
		if beats++; beats == 3 {
			break
		}
	}
	// Output:
	// heartbeat
	// heartbeat
	// heartbeat
}

// A Kind gives a signal a payload whose type both ends agree on.
func ExampleKind() {
	type File struct {
		Path string
		Size int
	}
	FileSaved := signals.NewKind[File]("file.saved")

	facts := signals.NewSink(signals.SinkOptions{})
	FileSaved.Subscribe(facts, func(_ signals.Signal, f File) {
		fmt.Printf("%s has %d bytes\n", f.Path, f.Size)
	})
	FileSaved.Raise(facts, "user-7", File{"a.txt", 512})

	for s, f := range FileSaved.Sense(facts, signals.Query{}) {
		fmt.Println(s.Name, s.Key, f.Path)
	}
	// Output:
	// a.txt has 512 bytes
	// file.saved user-7 a.txt
}

// A monitor counts matching signals in a sliding span. A circuit breaker can decide by it.
func ExampleMonitor() {
	facts := signals.NewSink(signals.SinkOptions{Capacity: 10})
	failures := facts.Monitor("payment.failed", time.Minute)
	defer failures.Stop()

	for i := range 3 {
		facts.RaiseKey("payment.failed", fmt.Sprintf("order-%d", i))
		for range 1000 {
			facts.Raise("page.viewed")
		}
	}
	last, _ := failures.Last()
	fmt.Println(failures.Count(), "failures, the last of", last.Key)
	fmt.Println("open:", failures.Count() >= 3, "- closes by itself within a minute:", failures.Below(3) <= time.Minute)
	// Output:
	// 3 failures, the last of order-2
	// open: true - closes by itself within a minute: true
}

// Match is the pattern language, for use of your own.
func ExampleMatch() {
	fmt.Println(signals.Match("error.*", "error.payment.declined"))
	fmt.Println(signals.Match("http.error:5??, timeout", "http.error:503"))
	fmt.Println(signals.Match("error", "error.payment"))
	// Output:
	// true
	// true
	// false
}

// The release of a held signal is a retraction.
func ExampleSink_SubscribeRetracted() {
	sink := signals.NewSink(signals.SinkOptions{})
	cancel := sink.SubscribeRetracted("update.*", func(r signals.Retraction) {
		fmt.Println(r.Signal.Name, r.Signal.Key, "has ended")
	})
	defer cancel()

	release := sink.Hold("update.in-progress", "prices", 0)
	release()
	// Output: update.in-progress prices has ended
}

// Sense finds signals that are present; Has and Count only say whether and how many.
func ExampleSink_Sense() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.RaiseKey("payment.declined", "order-1")
	sink.RaiseKey("payment.accepted", "order-2")
	for s := range sink.Sense(signals.Query{Pattern: "payment.*", Key: "order-2"}) {
		fmt.Println(s.Name, s.Key)
	}
	fmt.Println(sink.Has("payment.declined"), sink.Count("payment.*"))
	// Output:
	// payment.accepted order-2
	// true 2
}

// Retract takes signals back. Gates that they closed open.
func ExampleSink_Retract() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Raise("warehouse.closed")
	fmt.Println(sink.Retract("warehouse.*"), sink.Has("warehouse.closed"))
	// Output: 1 false
}

// WaitGone waits until no signal matches.
func ExampleSink_WaitGone() {
	sink := signals.NewSink(signals.SinkOptions{})
	reopen := sink.Hold("warehouse.closed", "north", 0)
	go reopen()
	fmt.Println(sink.WaitGone(context.Background(), "warehouse.*"))
	// Output: <nil>
}

// A monitor also counts signals that the sink no longer has. OnCount calls a function when the
// count reaches the high mark, and again when it is back at the low one.
func ExampleMonitor_OnCount() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 1})
	failures := sink.Monitor("call.failed", time.Minute)
	defer failures.Stop()
	failures.OnCount(3, 0, func(over bool) { fmt.Println("too many:", over) })
	for range 4 {
		sink.Raise("call.failed")
	}
	fmt.Println(failures.Count(), sink.Count("call.failed"))
	failures.Reset()
	// Output:
	// too many: true
	// 4 1
	// too many: false
}
