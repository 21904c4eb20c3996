package contributors_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/contributors"
)

// The prices of three shops are asked for. Two are enough to compare.
func Example() {
	prices, err := contributors.New[float64]([]string{"amber", "birch", "cedar"}, contributors.Options{})
	if err != nil {
		panic(err)
	}
	go prices.Complete("birch", 20)
	go prices.Complete("amber", 18)

	enough, err := prices.Wait(context.Background(), 2)
	if err != nil {
		panic(err)
	}
	for _, shop := range slices.Sorted(maps.Keys(enough.Results)) {
		fmt.Println(shop, enough.Results[shop])
	}
	fmt.Println("without", enough.Pending)
	// Output:
	// amber 18
	// birch 20
	// without [cedar]
}
