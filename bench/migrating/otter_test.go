package migrating_test

import (
	"context"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example_otterBefore() {
	pages := otter.Must(&otter.Options[string, string]{
		MaximumSize:       10_000,
		ExpiryCalculator:  otter.ExpiryAccessing[string, string](10 * time.Minute),
		RefreshCalculator: otter.RefreshWriting[string, string](time.Minute),
	})
	body, err := pages.Get(context.Background(), "/cat", otter.LoaderFunc[string, string](get))
	fmt.Println(body, err)
	// Output: CAT <nil>
}

func Example_otterAfter() {
	pages := core.Must(slidingcache.New(get, slidingcache.Options[string]{
		Capacity:     10_000,
		Sliding:      10 * time.Minute,
		RefreshAfter: time.Minute,
	}))
	defer pages.Close()
	body, err := pages.Get(context.Background(), "/cat")
	fmt.Println(body, err)
	// Output: CAT <nil>
}
