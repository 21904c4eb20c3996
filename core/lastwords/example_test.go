package lastwords_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func process(ctx context.Context, order string) error {
	op := core.OperationFrom(ctx)
	op.SetKey(order)
	if order == "order-2" {
		op.Raise("order.rejected")
		return errors.New("card declined")
	}
	op.Raise("order.shipped")
	return nil
}

// Every order that leaves the window is written down.
func Example() {
	orders := core.Must(core.NewCoordinator(process, core.Options{MaxConcurrency: 1, MaxTracked: -1}))
	journal, err := lastwords.New(orders, func(ctx context.Context, n lastwords.Note) error {
		fmt.Printf("%s %s: %s\n", n.Key, n.Status, n.Signal)
		return nil
	}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer journal.Close()

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		core.Must(orders.Enqueue(ctx, order))
	}
	err = orders.Drain(ctx)
	orders.Close()
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := errors.Join(err, journal.Drain(deadline)); err != nil { // Close would drop the notes that wait
		panic(err)
	}
	// Output:
	// order-1 succeeded: order.shipped
	// order-2 failed: order.rejected
	// order-3 succeeded: order.shipped
}

// Your own function selects the operations, and adds to their notes.
func ExampleNewRelay() {
	orders := core.Must(core.NewCoordinator(process, core.Options{MaxConcurrency: 1}))
	failed := func(s core.Snapshot) (lastwords.Note, bool) {
		n := lastwords.NoteOf(s)
		n.Metadata = map[string]string{"shop": "north"}
		return n, s.Status == core.StatusFailed
	}
	journal := core.Must(lastwords.NewRelay(orders, failed, func(ctx context.Context, n lastwords.Note) error {
		fmt.Println(n.Key, n.Status, n.Err, n.Metadata)
		return nil
	}, core.Options{}))

	ctx := context.Background()
	orders.Do(ctx, "order-1")
	orders.Do(ctx, "order-2")
	orders.Close()
	journal.Drain(ctx)
	// Output: order-2 failed card declined map[shop:north]
}

// A note that could not be stored is handed out.
func ExampleFailure() {
	orders := core.Must(core.NewCoordinator(process, core.Options{MaxConcurrency: 1}))
	var source lastwords.Source = orders
	journal := core.Must(lastwords.New(source, func(context.Context, lastwords.Note) error {
		return errors.New("disk is full")
	}, core.Options{}))
	journal.Failed().Subscribe(journal.Sink(), func(_ signals.Signal, f lastwords.Failure[lastwords.Note]) {
		fmt.Println(f.Value.Key, f.Err)
	})

	ctx := context.Background()
	orders.Do(ctx, "order-1")
	orders.Close()
	journal.Drain(ctx)
	// Output: order-1 disk is full
}
