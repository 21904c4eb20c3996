package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

type Order struct{ ID, Customer string }

func (o Order) CustomerKey() string { return o.Customer }

func Example() {
	dir := core.Must(os.MkdirTemp("", "ephemeral"))
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background()) // a server stops at a signal of the system

	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "shop.db"), sqlitewriter.Options{}))
	defer w.Close()
	core.Must(w.Exec(ctx, "create table if not exists orders (id text); create table if not exists shipment (order_id text)"))
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	ship := func(ctx context.Context, o Order) error {
		defer stop()
		return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
			if _, err := tx.Exec(ctx, "insert into shipment values (?)", o.ID); err != nil {
				return err
			}
			return sqlite.Finish(ctx, tx) // the shipment and the end of the item, or neither
		})
	}
	orders := core.Must(durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders"}))
	defer orders.Close()

	err := w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values ('4711')"); err != nil {
			return err
		}
		_, err := sqlite.Enqueue(ctx, tx, orders, Order{"4711", "ada"}) // the order and its item, or neither
		return err
	})
	if err != nil {
		panic(err)
	}
	if err := orders.Run(ctx); err != nil { // until ctx ends
		panic(err)
	}
	stats, err := orders.Stats(context.Background())
	fmt.Println(stats.Done, err) // 1 <nil>
	// Output: 1 <nil>
}
