package migrating_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

func Example_lruBefore() {
	ctx := context.Background()
	pages := expirable.NewLRU[string, string](10_000, nil, 10*time.Minute)
	body, ok := pages.Get("/cat")
	if !ok {
		var err error
		if body, err = get(ctx, "/cat"); err != nil { // many callers may load the same page
			panic(err)
		}
		pages.Add("/cat", body)
	}
	fmt.Println(body, pages.Len())
	// Output: CAT 1
}

func Example_lruAfter() {
	ctx := context.Background()
	pages := core.Must(lru.New(lru.Options[string, string]{Capacity: 10_000, TTL: -1, MaxAge: 10 * time.Minute}))
	body := core.Must(pages.GetOrLoad(ctx, "/cat", get))
	fmt.Println(body, pages.Len())
	// Output: CAT 1
}
