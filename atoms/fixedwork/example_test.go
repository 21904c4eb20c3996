package fixedwork_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example() {
	resize := func(ctx context.Context, image string) error {
		if image == "notes.txt" {
			return fmt.Errorf("%s is not an image", image)
		}
		return nil
	}
	pool, err := fixedwork.New(resize, fixedwork.Options{MaxConcurrency: 4})
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	ctx := context.Background()
	for _, image := range []string{"cat.png", "notes.txt", "dog.png"} {
		if _, err := pool.Enqueue(ctx, image); err != nil {
			panic(err)
		}
	}
	if err := pool.Drain(ctx); err != nil {
		panic(err)
	}

	fmt.Println(pool.Stats().Succeeded, "resized")
	for op := range pool.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Status, "because", op.Err)
	}
	// Output:
	// 2 resized
	// failed because notes.txt is not an image
}

// TryEnqueue tells a producer that must not wait that there is no room.
func ExamplePool_TryEnqueue() {
	busy, free := make(chan struct{}), make(chan struct{})
	pool, err := fixedwork.New(func(context.Context, string) error {
		busy <- struct{}{}
		<-free
		return nil
	}, fixedwork.Options{MaxConcurrency: 1, MaxQueued: 1})
	if err != nil {
		panic(err)
	}
	pool.TryEnqueue(context.Background(), "runs")
	<-busy
	pool.TryEnqueue(context.Background(), "waits")
	if _, err := pool.TryEnqueue(context.Background(), "too many"); errors.Is(err, core.ErrFull) {
		fmt.Println("try again later")
	}
	close(free)
	<-busy
	fmt.Println(pool.Drain(context.Background()))
	// Output:
	// try again later
	// <nil>
}

// Where every item is another piece of work, the items are functions.
func ExampleNew_functions() {
	pool := core.Must(fixedwork.New(func(ctx context.Context, f func(context.Context) error) error {
		return f(ctx)
	}, fixedwork.Options{MaxConcurrency: 4}))
	defer pool.Close()

	ctx := context.Background()
	for _, f := range []func(context.Context) error{
		func(context.Context) error { fmt.Println("resize"); return nil },
		func(context.Context) error { return errors.New("disk is full") },
	} {
		if err := pool.Do(ctx, f); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// resize
	// disk is full
}
