package reputation_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/reputation"
)

func Example() {
	scores, err := reputation.New[string](reputation.Options{HalfLife: time.Hour})
	if err != nil {
		panic(err)
	}
	scores.Update("192.0.2.1", +1) // a page
	for range 5 {
		scores.Update("192.0.2.66", -5) // a failed login
	}
	for address, score := range scores.All() {
		switch {
		case score < -20:
			fmt.Printf("%s %.0f blocked\n", address, score)
		default:
			fmt.Printf("%s %.0f\n", address, score)
		}
	}
	// Output:
	// 192.0.2.1 1
	// 192.0.2.66 -25 blocked
}
