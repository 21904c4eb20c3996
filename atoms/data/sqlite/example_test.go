package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/sqlite"
)

type Order struct {
	ID    string  `json:"id"`
	Total float64 `json:"total"`
}

func Example() {
	ctx, dir := context.Background(), filepath.Join(os.TempDir(), "ephemeral-sqlite")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	orders, err := sqlite.Open[string](ctx, filepath.Join(dir, "orders.db"), data.Options[Order]{Name: "orders"})
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	if err := orders.Save(ctx, "2026/17", Order{"2026/17", 42.5}); err != nil {
		panic(err) // if it is nil, the order survives a power cut
	}
	for e, err := range orders.All(ctx, "2026/") {
		fmt.Println(e.Key, e.Value.Total, err)
	}
	// Output: 2026/17 42.5 <nil>
}
