package flow_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type Order struct {
	ID      string
	Parcels []string
}

func orderID(o Order) string { return o.ID }

var errRefused = errors.New("refused")

// says is a Do that says what it does.
func says[R any](text string, result R) func(context.Context) (R, error) {
	return func(context.Context) (R, error) {
		fmt.Println(text)
		return result, nil
	}
}

func release(_ context.Context, shelf string, known bool) error {
	fmt.Println("release", shelf, known)
	return nil
}

func refund(_ context.Context, receipt int, known bool) error {
	fmt.Println("refund", receipt, known)
	return nil
}

func label(_ context.Context, parcel string) (string, error) { return "label of " + parcel, nil }

// ship is the body of a flow. Code between two steps may run again.
func ship(ctx context.Context, o Order) error {
	shelf, err := flow.Do(ctx, flow.Step[string]{Name: "reserve", Do: says("reserve", "shelf 7"), Compensate: release})
	if err != nil {
		return err // tried again after a pause; attempts count from the last step that was done
	}
	receipt, err := flow.Do(ctx, flow.Step[int]{Name: "charge", Class: "stripe", Do: says("charge", 4711), Compensate: refund})
	if err != nil {
		return err // permanent, or out of attempts: refund, then release; then the item is dead
	}
	said, err := flow.Await(ctx, "approval", "approval.given, approval.refused", 48*time.Hour)
	if err != nil {
		return err // flow.ErrParked until then: the flow is a row in the store; flow.ErrLate after the deadline
	}
	if said.Name == "approval.refused" { // branches are Go
		return durable.Permanent(errRefused) // compensates
	}
	labels, err := flow.Each(ctx, "label", o.Parcels, 4, label)
	if err != nil {
		return err
	}
	if err := flow.Sleep(ctx, "survey", 72*time.Hour); err != nil {
		return err
	}
	fmt.Println("send a survey about", shelf, receipt, labels)
	return durable.Return(ctx, len(labels))
}

// run enqueues an order whose flow gets a signal, and waits for its end.
func run(ship func(context.Context, Order) error, signal string) {
	bubble(func() {
		ctx, stop := context.WithCancel(context.Background())
		orders := core.Must(durable.New(durable.Memory(), orderID, ship, durable.Options{Name: "orders", Classes: []durable.Class{{Name: "stripe"}}}))
		go orders.Run(ctx)
		id := core.Must(orders.Enqueue(ctx, Order{ID: "o-1"}))
		if err := orders.Signal(ctx, "o-1", signal, nil); err != nil {
			panic(err)
		}
		_ = orders.WaitAll(ctx, id)
		stop()
		orders.Close()
	})
}

// The body of a flow: an order that is refused is undone.
func ExampleDo() {
	ship := func(ctx context.Context, o Order) error {
		shelf, err := flow.Do(ctx, flow.Step[string]{Name: "reserve", Do: says("reserve", "shelf 7"), Compensate: release})
		if err != nil {
			return err // tried again after a pause; attempts count from the last step that was done
		}
		receipt, err := flow.Do(ctx, flow.Step[int]{Name: "charge", Class: "stripe", Do: says("charge "+shelf, 4711), Compensate: refund})
		if err != nil {
			return err
		}
		said, err := flow.Await(ctx, "approval", "approval.given, approval.refused", 48*time.Hour)
		if err != nil {
			return err // flow.ErrParked until then: the flow is a row in the store
		}
		if said.Name == "approval.refused" { // branches are Go
			return durable.Permanent(errRefused) // refund, then release; then the item is dead
		}
		return durable.Return(ctx, receipt)
	}
	run(ship, "approval.refused")
	// Output:
	// reserve
	// charge shelf 7
	// refund 4711 true
	// release shelf 7 true
}

// An order waits for approval, and for its survey. The test of such a week takes milliseconds.
func Example() {
	bubble(func() {
		ctx, stop := context.WithCancel(context.Background())
		orders, err := durable.New(durable.Memory(), orderID, ship, durable.Options{Name: "orders", Poll: time.Minute, Lease: time.Hour, Classes: []durable.Class{{Name: "stripe", Rate: core.Rate{PerSecond: 10}}}})
		if err != nil {
			panic(err)
		}
		ended := make(chan error)
		go func() { ended <- orders.Run(ctx) }()

		good, err := orders.Enqueue(ctx, Order{"o-1", []string{"a", "b"}})
		if err != nil {
			panic(err)
		}
		time.Sleep(3 * time.Hour)
		fmt.Println(orders.Explain(ctx, good))
		if err := orders.Signal(ctx, "o-1", "approval.given", "ada"); err != nil {
			panic(err)
		}
		labels, err := durable.Wait[int](ctx, orders, good)
		fmt.Println(labels, err)

		bad, err := orders.Enqueue(ctx, Order{ID: "o-2"})
		if err != nil {
			panic(err)
		}
		if err := orders.Signal(ctx, "o-2", "approval.refused", "bob"); err != nil {
			panic(err)
		}
		_, err = durable.Wait[int](ctx, orders, bad)
		fmt.Println(err)
		stop()
		fmt.Println(<-ended, orders.Close())
	})
	// Output:
	// reserve
	// charge
	// waits for approval.given or approval.refused since 2000-01-01T00:00:00Z until 2000-01-03T00:00:00Z; done: reserve, charge <nil>
	// send a survey about shelf 7 4711 [label of a label of b]
	// 2 <nil>
	// reserve
	// charge
	// refund 4711 true
	// release shelf 7 true
	// durable: queue "orders": wait for item 2: durable: item 2 is dead: refused
	// <nil> <nil>
}

// A signal of this process becomes one for flows in a handler. With mesh, each process has it: the id lets one of them count.
func ExampleAwait_fromSink() {
	bubble(func() {
		ctx, stop := context.WithCancel(context.Background())
		paid := signals.NewKind[string]("payment.received") // the payload is the id of the order
		orders, err := durable.New(durable.Memory(), orderID, func(ctx context.Context, o Order) error {
			said, err := flow.Await(ctx, "payment", "payment.received", time.Hour)
			if err == nil {
				fmt.Println(o.ID, said.Name, string(said.Payload))
				stop()
			}
			return err
		}, durable.Options{Name: "orders"})
		if err != nil {
			panic(err)
		}
		sink := signals.NewSink(signals.SinkOptions{})
		defer paid.Subscribe(sink, func(s signals.Signal, id string) {
			if err := orders.Signal(ctx, id, s.Name, "by card", "payment of "+id); err != nil { // stored: it is not lost
				fmt.Println(err)
			}
		})()
		if _, err := orders.Enqueue(ctx, Order{ID: "o-1"}); err != nil {
			panic(err)
		}
		paid.Raise(sink, "shop", "o-1")
		paid.Raise(sink, "shop", "o-1") // twice
		fmt.Println(orders.Run(ctx), orders.Close())
	})
	// Output:
	// o-1 payment.received "by card"
	// <nil> <nil>
}

// Signals are events: what has happened to a key, folded, is its state.
func Example_eventSourcing() {
	ctx := context.Background()
	accounts, err := durable.New(durable.Memory(), func(id string) string { return id }, func(context.Context, string) error { return nil },
		durable.Options{Keep: durable.Keep{Signals: -1}}) // events are kept for ever, at most 1,000 for a key
	if err != nil {
		panic(err)
	}
	defer accounts.Close()
	for _, amount := range []int{100, -30, 5} {
		if err := accounts.Signal(ctx, "ada", "account.changed", amount); err != nil {
			panic(err)
		}
	}
	balance := 0
	for event, err := range accounts.Signals(ctx, "ada", 0) {
		if err != nil {
			panic(err)
		}
		var amount int
		if err := (flow.Said{Name: event.Name, Payload: event.Data}).Decode(&amount); err != nil {
			panic(err)
		}
		balance += amount
	}
	fmt.Println("balance", balance)
	// Output: balance 75
}

// A projection reads the events of a key that it has not seen, and remembers the Seq of the last one together with what it has made of them.
func Example_projection() {
	ctx := context.Background()
	orders, err := durable.New(durable.Memory(), orderID, func(context.Context, Order) error { return nil }, durable.Options{})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	view := struct {
		Cursor int64
		States []string
	}{} // a row of a table of yours
	project := func() {
		for event, err := range orders.Signals(ctx, "o-1", view.Cursor) {
			if err != nil {
				panic(err)
			}
			view.Cursor, view.States = event.Seq, append(view.States, event.Name) // in one transaction
		}
		fmt.Println(view.States)
	}
	for _, name := range []string{"order.paid", "order.packed"} {
		if err := orders.Signal(ctx, "o-1", name, nil); err != nil {
			panic(err)
		}
	}
	project()
	if err := orders.Signal(ctx, "o-1", "order.sent", nil); err != nil {
		panic(err)
	}
	project()
	// Output:
	// [order.paid order.packed]
	// [order.paid order.packed order.sent]
}
