package lru_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
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
	fmt.Println("still there:", ok, users.Stats().Loads, "loads")
	// Output:
	// loading ada
	// ADA
	// ADA
	// loading nobody
	// no such user
	// still there: false 2 loads
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
