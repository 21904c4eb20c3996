package lastwords_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
)

// Orders leave the window as soon as they are finished. What became of them is
// written down.
func Example() {
	orders, err := core.NewCoordinator(func(ctx context.Context, id string) error {
		op := core.OperationFrom(ctx)
		op.SetKey(id)
		if id == "order-2" {
			op.Raise("order.rejected")
			return errors.New("card declined")
		}
		op.Raise("order.shipped")
		return nil
	}, core.Options{MaxConcurrency: 1, MaxTracked: -1})
	if err != nil {
		panic(err)
	}

	journal, err := lastwords.New(orders, func(ctx context.Context, n lastwords.Note) error {
		fmt.Printf("%s %s: %s\n", n.Key, n.Status, n.Signal)
		return nil
	}, lastwords.Options{})
	if err != nil {
		panic(err)
	}
	defer journal.Close()

	ctx := context.Background()
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		if _, err := orders.Enqueue(ctx, id); err != nil {
			panic(err)
		}
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	orders.Close()
	if err := journal.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// order-1 succeeded: order.shipped
	// order-2 failed: order.rejected
	// order-3 succeeded: order.shipped
}

// Note selects what is worth a note, and says more about it.
func ExampleOptions_note() {
	uploads := core.Must(core.NewCoordinator(func(ctx context.Context, size int) error {
		if size > 100 {
			core.OperationFrom(ctx).Set("size", size)
			return errors.New("too big")
		}
		return nil
	}, core.Options{MaxConcurrency: 1}))

	journal := core.Must(lastwords.New(uploads, func(ctx context.Context, n lastwords.Note) error {
		fmt.Println(n.Status, n.Err, n.Metadata)
		return nil
	}, lastwords.Options{
		Note: func(s core.Snapshot) (lastwords.Note, bool) {
			n := lastwords.NoteOf(s)
			size, _ := core.Value[int](s, "size")
			n.Metadata = map[string]string{"size": fmt.Sprint(size)}
			return n, s.Status == core.StatusFailed
		},
	}))
	defer journal.Close()

	ctx := context.Background()
	for _, size := range []int{50, 150} {
		uploads.Enqueue(ctx, size)
	}
	uploads.Drain(ctx)
	uploads.Close()
	journal.Drain(ctx)
	// Output: failed too big map[size:150]
}
