package core_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// The first call of Times begins to count. In the last hour, three orders have ended, two of
// them in the lane hot.
func ExampleControl_Times() {
	ship := func(context.Context, string) error { return nil }
	orders := core.Must(core.NewCoordinator(ship, core.Options{Lanes: []core.Lane{{Name: "hot"}, {Name: "normal"}}}))
	defer orders.Close()
	orders.Times(0)
	for i, lane := range []string{"hot", "normal", "hot"} {
		if err := orders.Lane(lane).Do(context.Background(), fmt.Sprint("A-", i)); err != nil {
			panic(err)
		}
	}
	show := func(t core.Times) {
		fmt.Printf("%q: %d waited, half of them less than a second: %v\n", t.Lane, t.Waiting.Count(), t.Waiting.Quantile(0.5).Seconds() < 1)
	}
	for _, t := range orders.Times(0) {
		show(t)
	}
	// Output:
	// "": 3 waited, half of them less than a second: true
	// "hot": 2 waited, half of them less than a second: true
	// "normal": 1 waited, half of them less than a second: true
}
