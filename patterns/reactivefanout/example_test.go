package reactivefanout_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/reactivefanout"
)

// The store is blocked, so the first stage does not run far ahead.
func Example() {
	blocked := make(chan struct{})
	fanout := core.Must(reactivefanout.New(func(_ context.Context, page string) (int, error) {
		return len(page), nil // fetch
	}, func(context.Context, int) error {
		<-blocked // store
		return nil
	}, reactivefanout.Options{Concurrency: 8, Downstream: 4, High: 32, Low: 8}))
	defer fanout.Close()

	ctx := context.Background()
	for range 100 {
		core.Must(fanout.Enqueue(ctx, "a page"))
	}
	core.Must(fanout.Sink().WaitFor(ctx, reactivefanout.SignalThrottled))
	fmt.Println("the first stage may run", fanout.First().Stats().Limit)
	close(blocked)
	if err := fanout.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println("stored:", fanout.Second().Stats().Succeeded)
	fmt.Println("the first stage may run", fanout.First().Stats().Limit)
	// Output:
	// the first stage may run 1
	// stored: 100
	// the first stage may run 8
}
