package contributors_test

import (
	"context"
	"errors"
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

// Wait returns as soon as the number cannot be reached any more.
func ExampleTracker_Wait_unreachable() {
	replicas, err := contributors.New[int]([]string{"bergen", "oslo", "tromsø"}, contributors.Options{})
	if err != nil {
		panic(err)
	}
	replicas.Fail("oslo", errors.New("disk full"))
	replicas.Fail("bergen", context.DeadlineExceeded)

	outcomes, err := replicas.Wait(context.Background(), 2)
	if errors.Is(err, contributors.ErrUnreachable) {
		fmt.Println(len(outcomes.Failures), "failed")
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 2 failed
	// contributors: 2 of 3 cannot complete any more because 2 failed: bergen: context deadline exceeded; oslo: disk full
	// true
}
