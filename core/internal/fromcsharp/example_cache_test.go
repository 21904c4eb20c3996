package fromcsharp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A cache whose hot entries stay longer.
func Example_lru() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	users := core.Must(lru.New(lru.Options[string, user]{
		Capacity:    10_000,
		TTL:         5 * time.Minute,
		HotAfter:    3, // 3 accesses make an entry hot
		HotTTL:      30 * time.Minute,
		Sink:        sink,
		SampleEvery: 1, // one of n signals
	}))

	for range 4 { // loaded once, even if many ask at the same time
		u := core.Must(users.GetOrLoad(ctx, "user-7", loadUser))
		fmt.Println(u.Name)
	}
	for s := range sink.Sense(signals.Query{Pattern: "cache.*"}) {
		fmt.Println(s.Name, s.Key)
	}
	stats := users.Stats()
	fmt.Println(stats.Hot, "hot of", stats.Size)
	// Output:
	// Ada
	// Ada
	// Ada
	// Ada
	// cache.miss user-7
	// cache.hit user-7
	// cache.hot user-7
	// cache.hot user-7
	// 1 hot of 1
}

// These functions stand for your code.

type user struct{ Name string }

func loadUser(context.Context, string) (user, error) { return user{Name: "Ada"}, nil }
