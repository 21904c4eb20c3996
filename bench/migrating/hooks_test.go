package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_hooksAfter() {
	visit := func(ctx context.Context, url string) error {
		_, err := get(ctx, url)
		return err
	}
	hooked := func(ctx context.Context, url string) error {
		core.OperationFrom(ctx).Raise("visit.begun") // WorkBegin
		return visit(ctx, url)
	}
	visits, err := core.NewCoordinator(hooked, core.Options{
		MaxConcurrency: 4,
		OnDone: func(op core.Snapshot) { // WorkEnd
			if crash, ok := errors.AsType[*core.PanicError](op.Err); ok {
				fmt.Println(op.Item, crash.Value) // HandlePanic; the stack is in crash.Stack
			} else if op.Err != nil {
				fmt.Println(op.Item, op.Status, op.Err) // HandleError
			}
		},
	})
	if err != nil {
		panic(err)
	}
	defer visits.Close()

	ctx := context.Background()
	for _, url := range urls {
		if _, err := visits.Enqueue(ctx, url); err != nil {
			panic(err)
		}
	}
	if err := visits.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(visits.Count("visit.begun"), "begun")
	// Output:
	// /gone failed /gone: not found
	// 4 begun
}

// OnDone gets each failure of a list when it happens.
func Example_hooksForEach() {
	visit := func(ctx context.Context, url string) error {
		_, err := get(ctx, url)
		return err
	}
	err := core.ForEach(context.Background(), slices.Values(urls), visit, core.Options{
		OnDone: func(op core.Snapshot) {
			if op.Err != nil {
				fmt.Println(op.Item, "failed")
			}
		},
	})
	fmt.Println(err)
	// Output:
	// /gone failed
	// /gone: not found
}
