package molecules_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An order is reserved, paid and shipped. If it cannot be shipped, it is refunded and then
// released.
func Example() {
	// say returns the function of a step, which prints a verb and the key.
	say := func(verb string) func(context.Context, *molecules.Run) error {
		return func(_ context.Context, r *molecules.Run) error {
			fmt.Println(verb, r.Trigger.Key)
			return nil
		}
	}
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	runner := core.Must(molecules.New(sink, []molecules.Blueprint{{
		Name: "order",
		On:   "order.placed",
		Steps: []molecules.Step{
			{Name: "reserve", Do: say("reserve"), Compensate: say("release")},
			{Name: "pay", Do: say("charge"), Compensate: say("refund")},
			{Name: "ship", Timeout: time.Minute, Do: func(_ context.Context, r *molecules.Run) error {
				if r.Trigger.Key == "order-43" {
					return errors.New("out of stock")
				}
				r.Raise("order.shipped")
				return nil
			}},
		},
	}}, molecules.Options{Order: molecules.OrderSerial}))
	sink.Subscribe("order.shipped, molecule.failed", func(s signals.Signal) {
		fmt.Println(s.Name, s.Key)
	})

	sink.RaiseKey("order.placed", "order-42") // reserve, charge, order.shipped
	sink.RaiseKey("order.placed", "order-43") // reserve, charge, refund, release, molecule.failed
	if err := runner.Drain(ctx); err != nil {
		panic(err)
	}
	for op := range runner.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Err) // molecules: step "ship" of "order": out of stock
	}
	// Output:
	// reserve order-42
	// charge order-42
	// order.shipped order-42
	// reserve order-43
	// charge order-43
	// refund order-43
	// release order-43
	// molecule.failed order-43
	// molecules: step "ship" of "order": out of stock
}

// A step can wait for a signal with the key of the trigger.
func ExampleStep_await() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	settled := signals.NewKind[int]("payment.settled")

	runner := core.Must(molecules.New(sink, []molecules.Blueprint{{
		Name: "order",
		On:   "order.placed",
		Steps: []molecules.Step{{
			Name:         "ship",
			Await:        "payment.settled",
			AwaitTimeout: 15 * time.Minute,
			Do: func(_ context.Context, r *molecules.Run) error {
				payment, _ := r.Awaited()
				amount, _ := settled.From(payment)
				fmt.Println("ship", r.Trigger.Key, "for", amount)
				return nil
			},
		}},
	}}, molecules.Options{}))
	defer runner.Close()

	sink.RaiseKey("order.placed", "order-42")
	settled.Raise(sink, "order-7", 10)  // of another order
	settled.Raise(sink, "order-42", 30) // it may come at any time after the trigger
	if err := runner.Flush(ctx); err != nil {
		panic(err)
	}
	// Output:
	// ship order-42 for 30
}

// A trigger calls a function in the background: here when a run has failed.
func ExampleTrigger() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	alerts := core.Must(molecules.NewTrigger(sink, molecules.SignalFailed, func(_ context.Context, s signals.Signal) error {
		event, _ := molecules.Events.From(s)
		fmt.Println("alert:", event.Blueprint, "of", s.Key, "has failed")
		return nil
	}, molecules.TriggerOptions{Order: molecules.OrderSerial}))
	defer alerts.Close()

	runner := core.Must(molecules.New(sink, []molecules.Blueprint{{
		Name: "backup",
		On:   "night.*",
		Steps: []molecules.Step{{Name: "copy", Do: func(context.Context, *molecules.Run) error {
			return errors.New("disk full")
		}}},
	}}, molecules.Options{}))
	defer runner.Close()

	sink.RaiseKey("night.falls", "db-1")
	if err := errors.Join(runner.Drain(ctx), alerts.Drain(ctx)); err != nil {
		panic(err)
	}
	// Output:
	// alert: backup of db-1 has failed
}

// Mermaid draws a blueprint.
func ExampleBlueprint_Mermaid() {
	do := func(context.Context, *molecules.Run) error { return nil }
	fmt.Print(molecules.Blueprint{
		Name: "order",
		On:   "order.placed",
		When: func(signals.Signal) bool { return true },
		Steps: []molecules.Step{
			{Name: "reserve", Do: do, Compensate: do},
			{Name: "check", Do: do},
			{Name: "pay", Do: do, Compensate: do},
			{Name: "ship", Do: do, Await: "payment.settled, paid"},
		},
	}.Mermaid())
	// Output:
	// flowchart TD
	//     subgraph m0["order"]
	//         m0on(["order.placed"])
	//         m0s0["reserve"]
	//         m0s1["check"]
	//         m0s2["pay"]
	//         m0s3["ship"]
	//         m0completed(["completed"])
	//         m0u0["undo reserve"]
	//         m0u2["undo pay"]
	//         m0failed(["failed"])
	//         m0on -->|"when"| m0s0
	//         m0s0 --> m0s1
	//         m0s1 --> m0s2
	//         m0s2 -->|"payment.settled, paid"| m0s3
	//         m0s3 --> m0completed
	//         m0s0 -.->|"fails"| m0failed
	//         m0u0 -.-> m0failed
	//         m0s1 -.->|"fails"| m0u0
	//         m0s2 -.->|"fails"| m0u0
	//         m0u2 -.-> m0u0
	//         m0s3 -.->|"fails"| m0u2
	//     end
}

// Steps give work to coordinators, and a trigger reacts to a signal that a step has raised.
func Example_coordinators() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	coordinator := func(name string) *core.Coordinator[string] {
		return core.Must(core.NewCoordinator(func(_ context.Context, order string) error { return nil }, core.Options{Name: name, Sink: sink}))
	}
	payment, inventory, notification := coordinator("payment"), coordinator("inventory"), coordinator("notification")

	order := molecules.Blueprint{
		Name: "order",
		On:   "order.placed",
		Steps: []molecules.Step{
			{Name: "pay", Do: func(ctx context.Context, r *molecules.Run) error {
				_, err := payment.Enqueue(ctx, r.Trigger.Key)
				return err
			}},
			{Name: "reserve", Do: func(ctx context.Context, r *molecules.Run) error {
				r.Raise("order.payment.complete")
				_, err := inventory.Enqueue(ctx, r.Trigger.Key)
				return err
			}},
		},
	}
	runner := core.Must(molecules.New(sink, []molecules.Blueprint{order}, molecules.Options{}))
	defer runner.Close()
	trigger := core.Must(molecules.NewTrigger(sink, "order.payment.complete", func(ctx context.Context, s signals.Signal) error {
		_, err := notification.Enqueue(ctx, s.Key)
		return err
	}, molecules.TriggerOptions{}))
	defer trigger.Close()

	sink.RaiseKey("order.placed", "order-42")

	for _, l := range []core.Lifecycle{runner, trigger, payment, inventory, notification} { // upstream first
		if err := l.Drain(ctx); err != nil {
			panic(err)
		}
	}
	for _, c := range []*core.Coordinator[string]{payment, inventory, notification} {
		fmt.Println(c.Name(), c.Stats().Succeeded)
	}
	// Output:
	// payment 1
	// inventory 1
	// notification 1
}

// A payment does not come in time, and the mail about it cannot be sent. The errors say
// which step and which trigger failed.
func ExampleStepError() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	molecules.Events.Named(molecules.SignalFailed).Subscribe(sink, func(s signals.Signal, e molecules.Event) {
		var step *molecules.StepError
		if errors.As(e.Err, &step) && errors.Is(e.Err, core.ErrTimeout) {
			fmt.Println(s.Key+":", step.Err)
		}
	})
	molecules.TriggerFailed.Subscribe(sink, func(s signals.Signal, e molecules.TriggerEvent) {
		fmt.Println(s.Key+":", e.Trigger, "failed:", e.Err)
	})

	runner := core.Must(molecules.New(sink, []molecules.Blueprint{{
		Name:  "order",
		On:    "order.placed",
		Steps: []molecules.Step{{Name: "ship", Await: "payment.settled", AwaitTimeout: time.Millisecond}},
	}}, molecules.Options{}))
	defer runner.Close()
	mails := core.Must(molecules.NewTrigger(sink, molecules.SignalFailed, func(context.Context, signals.Signal) error {
		return errors.New("no mail server")
	}, molecules.TriggerOptions{Name: "mail"}))
	defer mails.Close()

	sink.RaiseKey("order.placed", "order-42")
	if err := errors.Join(runner.Drain(ctx), mails.Drain(ctx)); err != nil {
		panic(err)
	}
	for op := range runner.Operations(core.OperationQuery{}) {
		fmt.Println(op.Key+":", op.Status)
	}
	// Output:
	// order-42: no signal matching "payment.settled" with key "order-42" came within 1ms: core: operation took longer than its timeout
	// order-42: mail failed: no mail server
	// order-42: failed
}
