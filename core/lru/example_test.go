package lru_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	type user struct{ name string }
	loadUser := func(_ context.Context, id string) (*user, error) {
		fmt.Println("loading", id)
		if id == "nobody" {
			return nil, errors.New("no such user")
		}
		return &user{strings.ToUpper(id)}, nil
	}
	users, err := lru.New(lru.Options[string, *user]{Capacity: 10_000})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for _, id := range []string{"ada", "ada", "nobody"} {
		u, err := users.GetOrLoad(ctx, id, loadUser)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(u.name)
	}
	users.Remove("ada")
	_, ok := users.Get("ada")
	fmt.Println("still there:", ok)
	// Output:
	// loading ada
	// ADA
	// ADA
	// loading nobody
	// no such user
	// still there: false
}

// The load of a token says how long the token lives. After that time the token is not
// returned, however often it is read.
func ExampleLRU_SetWithLife() {
	tokens := core.Must(lru.New(lru.Options[string, string]{}))
	tokens.SetWithLife("ada", "token 1", 55*time.Minute)
	fmt.Println(tokens.Get("ada"))
	// Output: token 1 true
}

// Refresh loads a present value again. If the load fails, the old value stays.
func ExampleLRU_Refresh() {
	rates := core.Must(lru.New(lru.Options[string, float64]{}))
	rates.Set("EUR", 1.08)

	ctx := context.Background()
	_, err := rates.Refresh(ctx, "EUR", func(context.Context, string) (float64, error) {
		return 0, errors.New("the bank is closed")
	})
	fmt.Println(err)
	fmt.Println(rates.Peek("EUR"))
	fmt.Println(rates.Refresh(ctx, "EUR", func(context.Context, string) (float64, error) { return 1.09, nil }))
	// Output:
	// the bank is closed
	// 1.08 true
	// 1.09 <nil>
}

// Peek is not an access. Remove returns what was there.
func ExampleLRU_Peek() {
	prices := core.Must(lru.New(lru.Options[string, int]{}))
	prices.Set("tea", 3)

	fmt.Println(prices.Peek("tea"))
	fmt.Println(prices.Peek("coffee"))
	fmt.Println(prices.Remove("tea"))
	fmt.Println(prices.Remove("tea"))
	fmt.Println(prices.Stats().Hits, "hits")
	// Output:
	// 3 true
	// 0 false
	// 3 true
	// 0 false
	// 0 hits
}

// A cache raises its signals on a sink of the program.
func ExampleOptions_sink() {
	sink := signals.NewSink(signals.SinkOptions{})
	prices := core.Must(lru.New(lru.Options[int, float64]{Sink: sink, HotAfter: 3}))

	prices.Get(7)
	prices.Set(7, 9.99)
	prices.Get(7)
	prices.Get(7)
	prices.Remove(7)
	for s := range sink.Sense(signals.Query{Pattern: "cache.*"}) {
		fmt.Println(s.Name, s.Key)
	}
	// Output:
	// cache.miss 7
	// cache.hit 7
	// cache.hot 7
	// cache.invalidated 7
}

// Values that hold a resource are closed when they leave the cache.
func ExampleOptions_onRemoved() {
	type connection struct{ to string }
	connections := core.Must(lru.New(lru.Options[string, *connection]{
		Capacity: 1,
		OnRemoved: func(host string, c *connection, reason lru.Reason) {
			fmt.Println("closing", c.to, "because it was", reason)
		},
	}))

	connections.Set("a", &connection{"a"})
	connections.Set("b", &connection{"b"})
	connections.Set("b", &connection{"b again"})
	connections.Clear()
	// Output:
	// closing a because it was evicted
	// closing b because it was replaced
	// closing b again because it was invalidated
}
