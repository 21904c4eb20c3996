package guide_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_shutdown() {
	ship := func(ctx context.Context, order string) error {
		switch order {
		case "broken":
			return errors.New("no such shelf")
		case "stuck":
			<-ctx.Done() // a body must end when its context ends
			return context.Cause(ctx)
		}
		fmt.Println("shipped", order)
		return nil
	}
	orders := core.Must(core.NewCoordinator(ship, core.Options{MaxConcurrency: 1}))

	ctx := context.Background()
	if err := orders.Do(ctx, "order-1"); err != nil { // enqueues the item and waits until it is done
		panic(err)
	}
	for _, order := range []string{"broken", "stuck", "order-2"} {
		core.Must(orders.Enqueue(ctx, order))
	}

	// The end of main:
	deadline, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // 20 seconds in a real program
	defer cancel()
	err := orders.Drain(deadline)
	fmt.Println("drain:", errors.Is(err, context.DeadlineExceeded))
	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Item, "failed:", op.Err)
	}
	orders.Close() // from now on, Operations has nothing

	_, err = orders.Enqueue(ctx, "order-3")
	fmt.Println(errors.Is(err, core.ErrClosed))
	s := orders.Stats()
	fmt.Println(s.Enqueued, "accepted:", s.Succeeded, "succeeded,", s.Failed, "failed,", s.Cancelled, "cancelled")
	// Output:
	// shipped order-1
	// drain: true
	// broken failed: no such shelf
	// true
	// 4 accepted: 1 succeeded, 1 failed, 2 cancelled
}

func Example_pipeline() {
	mails := core.Must(core.NewCoordinator(func(ctx context.Context, mail string) error {
		fmt.Println("sent:", mail)
		return nil
	}, core.Options{Name: "mails"}))
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		_, err := mails.Enqueue(ctx, order+" is on its way")
		return err
	}, core.Options{Name: "orders"}))

	ctx := context.Background()
	core.Must(orders.Enqueue(ctx, "order-1"))
	if err := core.Shutdown(ctx, orders, mails); err != nil { // orders first, then mails
		panic(err)
	}
	// Output: sent: order-1 is on its way
}
