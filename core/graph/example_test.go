package graph_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/graph"
)

func Example() {
	tables := graph.New[string]()
	err := errors.Join(
		tables.Add("schema", "schema.sql"),
		tables.Add("users", "users.csv", "schema"),
		tables.Add("products", "products.csv", "schema"),
		tables.Add("orders", "orders.csv", "users", "products"),
		tables.Add("invoices", "invoices.csv", "orders"),
	)
	if err != nil {
		panic(err)
	}

	load := func(ctx context.Context, file string) error {
		if file == "products.csv" {
			return errors.New("line 7: no price")
		}
		return nil
	}
	report, err := tables.Run(context.Background(), load, core.Options{MaxConcurrency: 4})
	fmt.Println(err)
	for _, n := range report.Nodes {
		fmt.Println(n.Name, n.Status)
	}
	invoices, _ := report.Node("invoices")
	fmt.Println("because of", invoices.FailedDependency)
	// Output:
	// graph: node "products": line 7: no price
	// schema succeeded
	// users succeeded
	// products failed
	// orders skipped
	// invoices skipped
	// because of products
}
