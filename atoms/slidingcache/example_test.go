package slidingcache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	type Profile struct{ Name string }
	loadProfile := func(ctx context.Context, userID string) (Profile, error) {
		fmt.Println("loading", userID)
		return Profile{"Ada"}, nil
	}
	cache := core.Must(slidingcache.New(loadProfile, slidingcache.Options[string]{
		Sliding:  5 * time.Minute,
		Absolute: time.Hour,
		Capacity: 1000,
	}))
	defer cache.Close()

	ctx := context.Background()
	profile := core.Must(cache.Get(ctx, "user-123")) // loads and stores it
	profile, _ = cache.Get(ctx, "user-123")          // expires five minutes from now
	if cached, ok := cache.GetIfPresent("user-123"); ok {
		fmt.Println(cached == profile, cached.Name)
	}
	stats := cache.Stats()
	fmt.Printf("%d entries, %d hits, %d hot\n", stats.Size, stats.Hits, stats.Hot) // hot: five accesses or more
	// Output:
	// loading user-123
	// true Ada
	// 1 entries, 2 hits, 0 hot
}

// The code that changes a product raises a signal. It does not know which caches hold
// products.
func ExampleOptions_invalidateOn() {
	prices := map[string]int{"tea": 3}
	sink := signals.NewSink(signals.SinkOptions{})
	cache, err := slidingcache.New(func(ctx context.Context, product string) (int, error) {
		price, ok := prices[product]
		if !ok {
			return 0, slidingcache.ErrNotFound
		}
		return price, nil
	}, slidingcache.Options[string]{
		Sink:         sink,
		InvalidateOn: "product.changed",
		NegativeTTL:  time.Minute,
	})
	if err != nil {
		panic(err)
	}
	defer cache.Close()

	ctx := context.Background()
	fmt.Println(cache.Get(ctx, "tea"))
	_, err = cache.Get(ctx, "coffee")
	fmt.Println(errors.Is(err, slidingcache.ErrNotFound))

	prices["tea"], prices["coffee"] = 4, 5
	fmt.Println(cache.Get(ctx, "tea"))
	sink.RaiseKey("product.changed", "tea")
	sink.RaiseKey("product.changed", "coffee")
	fmt.Println(cache.Get(ctx, "tea"))
	fmt.Println(cache.Get(ctx, "coffee"))
	// Output:
	// 3 <nil>
	// true
	// 3 <nil>
	// 4 <nil>
	// 5 <nil>
}

// The load of a token says how long the token lives. After that time the token is not
// returned, however often it is read.
func ExampleNewWithLife() {
	issued := 0
	login := func(ctx context.Context, account string) (string, time.Duration, error) {
		issued++
		return fmt.Sprint("token ", issued, " of ", account), 55 * time.Minute, nil
	}
	tokens, err := slidingcache.NewWithLife(login, slidingcache.Options[string]{})
	if err != nil {
		panic(err)
	}
	defer tokens.Close()

	ctx := context.Background()
	fmt.Println(tokens.Get(ctx, "ada"))
	fmt.Println(tokens.Get(ctx, "ada"))
	fmt.Println(tokens.Refresh(ctx, "ada")) // it was revoked
	fmt.Println(tokens.Peek("ada"))         // no access: does not change its life
	fmt.Println(tokens.Remove("ada"))
	_, there := tokens.Peek("ada")
	fmt.Println(there)
	// Output:
	// token 1 of ada <nil>
	// token 1 of ada <nil>
	// token 2 of ada <nil>
	// token 2 of ada true
	// token 2 of ada true
	// false
}

// A value that is set wins over a load that began before.
func ExampleCache_Set() {
	load := func(context.Context, string) (int, error) { return 490, nil }
	prices := core.Must(slidingcache.New(load, slidingcache.Options[string]{}))
	defer prices.Close()

	ctx := context.Background()
	fmt.Println(prices.Get(ctx, "Vienna"))
	prices.Set("Vienna", 520)
	fmt.Println(prices.Get(ctx, "Vienna"))
	// Output:
	// 490 <nil>
	// 520 <nil>
}

// A load is an operation, so the cache can say what it waits for.
func ExampleCache_Explain() {
	asked, answer := make(chan bool), make(chan bool)
	prices := core.Must(slidingcache.New(func(ctx context.Context, city string) (int, error) {
		defer core.OperationFrom(ctx).WaitsFor("the carrier", time.Time{})()
		close(asked)
		<-answer
		return 490, nil
	}, slidingcache.Options[string]{}))
	defer prices.Close()
	defer close(answer)

	go prices.Get(context.Background(), "Vienna")
	<-asked
	for load := range prices.Loads(core.OperationQuery{Status: core.StatusRunning}) {
		why, _ := prices.Explain(load.ID)
		fmt.Println(load.Key, why.Status, why.Reasons[0].What)
	}
	// Output: Vienna running the carrier
}
