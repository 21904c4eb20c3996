package postgres_test

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
	"github.com/ephemeralgo/ephemeral/core"
)

// Order is an item of the examples, which need a server and are only compiled.
type Order struct{ ID, Customer string }

func (o Order) CustomerKey() string { return o.Customer }

func Example() {
	ctx := context.Background()
	pool := core.Must(pgxpool.New(ctx, os.Getenv("DATABASE_URL")))
	defer pool.Close()
	store := core.Must(postgres.Open(ctx, pool, postgres.Options{}))
	ship := func(ctx context.Context, o Order) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into shipment (order_id) values ($1)", o.ID); err != nil {
				return err
			}
			return postgres.Finish(ctx, tx) // the shipment and the end of the item, or neither
		})
	}
	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders", MaxConcurrency: 16, MaxCluster: 40})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders (id) values ('4711')"); err != nil {
			return err
		}
		_, err := postgres.Enqueue(ctx, tx, orders, Order{"4711", "ada"}) // the order and its item, or neither
		return err
	})
	if err != nil {
		panic(err)
	}
	if err := orders.Run(ctx); err != nil { // until ctx ends
		panic(err)
	}
	fmt.Println("stopped")
}
