package reputation_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/reputation"
	"github.com/ephemeralgo/ephemeral/core/signals"
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

// Changes are signals that any code can subscribe to.
func ExampleScores_Update() {
	sink := signals.NewSink(signals.SinkOptions{})
	reputation.Updates.Subscribe(sink, func(s signals.Signal, score float64) {
		if score > 8 {
			sink.RaiseKey("verdict.bot", s.Key)
		}
	})
	type UserID string
	bots, err := reputation.New[UserID](reputation.Options{HalfLife: 10 * time.Minute, Sink: sink})
	if err != nil {
		panic(err)
	}
	bots.Update("user-123", +5)
	fmt.Println(sink.Has("verdict.bot"))
	bots.Update("user-123", +5)
	fmt.Println(sink.Has("verdict.bot"))
	// Output:
	// false
	// true
}
