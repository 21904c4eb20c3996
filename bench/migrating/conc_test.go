package migrating_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/sourcegraph/conc/pool"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_concBefore() {
	p := pool.NewWithResults[string]().WithContext(context.Background()).WithMaxGoroutines(4)
	for _, url := range urls {
		p.Go(func(ctx context.Context) (string, error) { return get(ctx, url) })
	}
	bodies, err := p.Wait()
	slices.Sort(bodies) // results come in the order of completion
	fmt.Println(bodies, err)
	// Output: [CAT COW DOG] /gone: not found
}

func Example_concAfter() {
	var bodies []string
	for body, err := range core.Map(context.Background(), slices.Values(urls), get, core.Options{MaxConcurrency: 4}) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		bodies = append(bodies, body)
	}
	fmt.Println(bodies)
	// Output:
	// /gone: not found
	// [CAT DOG COW]
}
