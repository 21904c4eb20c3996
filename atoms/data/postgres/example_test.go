package postgres_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/postgres"
	"github.com/ephemeralgo/ephemeral/core"
)

// Order is the value of the examples. They need a server, so they are only compiled.
type Order struct {
	Customer struct {
		City string `json:"city"`
	} `json:"customer"`
	Total float64 `json:"total"`
}

func Example() {
	ctx := context.Background()
	pool := core.Must(pgxpool.New(ctx, os.Getenv("DATABASE_URL")))
	defer pool.Close()
	orders := core.Must(postgres.Open[string](ctx, pool, data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	if err := orders.Save(ctx, "2026/17", Order{Total: 42.5}); err != nil {
		panic(err) // if it is nil, the server has committed
	}
	for entry, err := range orders.Query(ctx, []string{"customer", "city"}, "Berlin") {
		if err != nil {
			panic(err)
		}
		fmt.Println(entry.Key, entry.Value.Total)
	}
}

// The store notifies other processes. They remove changed values from a cache.
func ExampleKeyHash() {
	ctx := context.Background()
	pool := core.Must(pgxpool.New(ctx, os.Getenv("DATABASE_URL")))
	defer pool.Close()
	opts := postgres.Options{Schema: "shop", CreateSchema: true, Table: "orders", Notify: "orders"}
	var orders postgres.Store[string, Order] = core.Must(postgres.New[string](ctx, pool, opts, data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	conn := core.Must(pool.Acquire(ctx)) // connection of the other process
	defer conn.Release()
	core.Must(conn.Exec(ctx, "listen orders"))
	for {
		n, err := conn.Conn().WaitForNotification(ctx)
		if err != nil {
			panic(err) // the connection is lost: from now on, all values of the cache may be old
		}
		hashes := strings.Fields(n.Payload)
		if n.Payload == "*" || slices.Contains(hashes, postgres.KeyHash("2026/17")) {
			fmt.Println("order 2026/17 may have changed")
		}
	}
}
