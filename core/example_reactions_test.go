package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Route the signals of a coordinator to handlers that may take their time: the
// operations that raise the signals do not wait for them.
func ExampleDispatcher() {
	d := core.Must(core.NewDispatcher(core.Options{MaxConcurrency: 8}))
	defer d.Close()
	d.Handle("error.*", func(ctx context.Context, s signals.Signal) error {
		fmt.Println("alert:", s.Name, "of", s.Key)
		return nil
	})
	d.Handle("error.payment", func(ctx context.Context, s signals.Signal) error {
		return errors.New("the mail server is down")
	})

	ctx := context.Background()
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		core.OperationFrom(ctx).RaiseKey("error.payment", order)
		core.OperationFrom(ctx).Raise("order.seen") // nobody handles that
		return nil
	}, core.Options{OnSignal: d.Dispatch}))
	defer orders.Close()

	if err := orders.Do(ctx, "order-7"); err != nil {
		panic(err)
	}
	if err := d.Flush(ctx); err != nil { // all dispatched signals are handled, and more may come
		panic(err)
	}
	for op := range d.Operations(core.OperationQuery{}) {
		fmt.Println(op.Key, op.Status, "because", op.Err)
	}
	// Output:
	// alert: error.payment of order-7
	// error.payment failed because the mail server is down
}

// A handler that is not needed any more is removed.
func ExampleDispatcher_Handle() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	d := core.Must(core.NewDispatcher(core.Options{}))
	defer d.Close()
	defer sink.Subscribe("*", d.Dispatch)()

	remove := d.Handle("progress:*", func(ctx context.Context, s signals.Signal) error {
		percent, _ := s.Arg()
		fmt.Println(percent, "percent")
		return nil
	})
	sink.Raise("progress:50")
	if err := d.Flush(ctx); err != nil {
		panic(err)
	}
	remove()
	sink.Raise("progress:60")
	fmt.Println(d.Stats().Succeeded, "handled")
	// Output:
	// 50 percent
	// 1 handled
}

// Send every signal of a sink somewhere else, in the background.
func ExampleProcessor() {
	sink := signals.NewSink(signals.SinkOptions{})
	send := func(ctx context.Context, s signals.Signal) error {
		fmt.Println("sent", s.Name)
		return nil
	}
	p := core.Must(core.NewProcessor(send, core.Options{MaxConcurrency: 1, MaxQueued: 2}))
	defer p.Close()
	defer sink.Subscribe("*", p.Process)()

	p.Pause() // the other side does not answer
	for _, name := range []string{"order.placed", "order.paid", "order.sent"} {
		sink.Raise(name)
	}
	p.Resume()
	if err := p.Drain(context.Background()); err != nil {
		panic(err)
	}
	s := p.Stats()
	fmt.Println(s.Succeeded, "sent,", s.Dropped, "dropped")
	// Output:
	// sent order.paid
	// sent order.sent
	// 2 sent, 1 dropped
}
