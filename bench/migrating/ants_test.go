package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/panjf2000/ants/v2"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example_antsBefore() {
	ctx := context.Background()
	var wg sync.WaitGroup
	var failed atomic.Int64
	pool, err := ants.NewPoolWithFuncGeneric(4, func(url string) {
		defer wg.Done()
		if _, err := get(ctx, url); err != nil {
			failed.Add(1)
		}
	})
	if err != nil {
		panic(err)
	}
	defer pool.Release()

	for _, url := range urls {
		wg.Add(1)
		if err := pool.Invoke(url); err != nil {
			panic(err)
		}
	}
	wg.Wait()
	fmt.Println(failed.Load(), "failed")
	// Output: 1 failed
}

func Example_antsAfter() {
	ctx := context.Background()
	pool := core.Must(fixedwork.New(func(ctx context.Context, url string) error {
		_, err := get(ctx, url)
		return err
	}, core.Options{MaxConcurrency: 4}))
	defer pool.Close()

	for _, url := range urls {
		if _, err := pool.Enqueue(ctx, url); err != nil {
			panic(err)
		}
	}
	if err := pool.Flush(ctx); err != nil {
		panic(err)
	}
	fmt.Println(pool.Stats().Failed, "failed")
	for op := range pool.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Err)
	}
	// Output:
	// 1 failed
	// /gone: not found
}

func Example_antsNonblockingBefore() {
	release := make(chan struct{})
	pool, err := ants.NewPool(1, ants.WithNonblocking(true))
	if err != nil {
		panic(err)
	}
	defer pool.Release()
	defer close(release)

	busy := func() { <-release }
	fmt.Println(pool.Submit(busy))
	fmt.Println(errors.Is(pool.Submit(busy), ants.ErrPoolOverload))
	// Output:
	// <nil>
	// true
}

func Example_antsNonblockingAfter() {
	ctx := context.Background()
	release := make(chan struct{})
	pool, err := fixedwork.New(func(context.Context, string) error { <-release; return nil },
		core.Options{MaxConcurrency: 1, MaxQueued: -1})
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	defer close(release)

	_, err = pool.TryEnqueue(ctx, "/cat")
	fmt.Println(err)
	_, err = pool.TryEnqueue(ctx, "/dog")
	fmt.Println(errors.Is(err, core.ErrFull))
	// Output:
	// <nil>
	// true
}
