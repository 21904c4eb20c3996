package migrating_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"

	"github.com/ephemeralgo/ephemeral/core/flight"
)

func Example_singleflightBefore() {
	ctx := context.Background()
	var pages singleflight.Group
	body, err, _ := pages.Do("/cat", func() (any, error) { return get(ctx, "/cat") })
	fmt.Println(body.(string), err)
	// Output: CAT <nil>
}

func Example_singleflightAfter() {
	ctx := context.Background()
	var pages flight.Group[string, string]
	body, err := pages.Do(ctx, "/cat", get)
	fmt.Println(body, err)
	// Output: CAT <nil>
}
