package migrating_test

import (
	"context"
	"fmt"

	"github.com/alitto/pond/v2"

	"github.com/ephemeralgo/ephemeral/core"
)

func Example_pondBefore() {
	ctx := context.Background()
	pool := pond.NewResultPool[string](4, pond.WithQueueSize(100))
	defer pool.StopAndWait()

	cat := pool.SubmitErr(func() (string, error) { return get(ctx, "/cat") })
	gone := pool.SubmitErr(func() (string, error) { return get(ctx, "/gone") })
	fmt.Println(cat.Wait())
	fmt.Println(gone.Wait())
	// Output:
	// CAT <nil>
	//  /gone: not found
}

func Example_pondAfter() {
	ctx := context.Background()
	pool := core.Must(core.NewResultCoordinator(get, core.Options{MaxConcurrency: 4, MaxQueued: 100}))
	defer pool.Close()

	cat := core.Must(pool.Submit(ctx, "/cat"))
	gone := core.Must(pool.Submit(ctx, "/gone"))
	fmt.Println(cat.Wait(ctx))
	fmt.Println(gone.Wait(ctx))
	// Output:
	// CAT <nil>
	//  /gone: not found
}

func Example_pondGroupBefore() {
	ctx := context.Background()
	pool := pond.NewPool(4)
	defer pool.StopAndWait()

	group := pool.NewGroup()
	for _, url := range urls {
		group.SubmitErr(func() error {
			_, err := get(ctx, url)
			return err
		})
	}
	fmt.Println(group.Wait())
	// Output: /gone: not found
}

func Example_pondGroupAfter() {
	ctx := context.Background()
	pool := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		_, err := get(ctx, url)
		return err
	}, core.Options{MaxConcurrency: 4}))
	defer pool.Close()

	group := pool.Group(ctx, core.GroupOptions{StopOnError: true})
	for _, url := range urls {
		if _, err := group.Enqueue(ctx, url); err != nil {
			break // the group has stopped, and Wait says why
		}
	}
	fmt.Println(group.Wait())
	// Output: /gone: not found
}
