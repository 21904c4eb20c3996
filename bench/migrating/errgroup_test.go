package migrating_test

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_errgroupBefore() {
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(4)
	for _, url := range urls {
		g.Go(func() error {
			_, err := get(ctx, url)
			return err
		})
	}
	fmt.Println(g.Wait())
	// Output: /gone: not found
}

func Example_errgroupAfter() {
	visit := func(ctx context.Context, url string) error {
		_, err := get(ctx, url)
		return err
	}
	err := core.ForEach(context.Background(), slices.Values(urls), visit,
		core.Options{MaxConcurrency: 4, StopOnError: true})
	fmt.Println(err)
	// Output: /gone: not found
}

func Example_errgroupTasksBefore() {
	g, ctx := errgroup.WithContext(context.Background())
	var cat, dog string
	g.Go(func() (err error) { cat, err = get(ctx, "/cat"); return err })
	g.Go(func() (err error) { dog, err = get(ctx, "/dog"); return err })
	if err := g.Wait(); err != nil {
		panic(err)
	}
	fmt.Println(cat, dog)
	// Output: CAT DOG
}

func Example_errgroupTasksAfter() {
	var cat, dog string
	tasks := []func(context.Context) error{
		func(ctx context.Context) (err error) { cat, err = get(ctx, "/cat"); return err },
		func(ctx context.Context) (err error) { dog, err = get(ctx, "/dog"); return err },
	}
	run := func(ctx context.Context, task func(context.Context) error) error { return task(ctx) }
	err := core.ForEach(context.Background(), slices.Values(tasks), run, core.Options{StopOnError: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(cat, dog)
	// Output: CAT DOG
}
