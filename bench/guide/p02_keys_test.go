package guide_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_keys() {
	type order struct {
		customer string
		number   int
	}
	bobIsDone := make(chan bool)
	ship := func(ctx context.Context, o order) error {
		if o.customer == "ada" && o.number == 1 {
			<-bobIsDone // this order is slow
		}
		fmt.Println(o.customer, o.number)
		if o.customer == "bob" {
			close(bobIsDone)
		}
		return nil
	}
	customer := func(o order) string { return o.customer }
	orders := core.Must(core.NewKeyedCoordinator(customer, ship, core.Options{MaxConcurrency: 2}))
	defer orders.Close()

	ctx := context.Background()
	for _, o := range []order{{"ada", 1}, {"ada", 2}, {"bob", 1}} {
		core.Must(orders.Enqueue(ctx, o))
	}
	if err := orders.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// bob 1
	// ada 1
	// ada 2
}

func Example_lanes() {
	lanes := core.Must(core.ParseLanes("hot, normal, slow:2"))
	show := func(ctx context.Context, text string) error {
		fmt.Println(text)
		return nil
	}
	jobs := core.Must(core.NewCoordinator(show, core.Options{MaxConcurrency: 1, Lanes: lanes}))
	defer jobs.Close()

	ctx := context.Background()
	jobs.Pause() // until all three are in the queue
	core.Must(jobs.Lane("slow").Enqueue(ctx, "rebuild the index"))
	core.Must(jobs.Enqueue(ctx, "send a mail")) // no lane: "normal"
	core.Must(jobs.Lane("hot").Enqueue(ctx, "answer a customer"))
	jobs.Resume()
	if err := jobs.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// answer a customer
	// send a mail
	// rebuild the index
}
