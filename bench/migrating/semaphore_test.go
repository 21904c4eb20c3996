package migrating_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_semaphoreBefore() {
	sem := semaphore.NewWeighted(2)
	limited := func(ctx context.Context, url string) (string, error) {
		if err := sem.Acquire(ctx, 1); err != nil {
			return "", err
		}
		defer sem.Release(1)
		return get(ctx, url)
	}
	fmt.Println(limited(context.Background(), "/cat"))
	// Output: CAT <nil>
}

func Example_semaphoreAfter() {
	pages := core.Must(core.NewResultCoordinator(get, core.Options{MaxConcurrency: 2}))
	defer pages.Close()
	fmt.Println(pages.Do(context.Background(), "/cat"))
	// Output: CAT <nil>
}
