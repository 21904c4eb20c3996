package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

type Order struct {
	ID    string  `json:"id"`
	Total float64 `json:"total"`
}

func Example() {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "ephemeral"))
	defer os.RemoveAll(dir)
	orders := core.Must(sqlite.Open[string](ctx, filepath.Join(dir, "orders.db"), data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	if err := orders.Save(ctx, "2026/17", Order{"2026/17", 42.5}); err != nil {
		panic(err) // if it is nil, the order survives a power cut
	}
	for e, err := range orders.All(ctx, "2026/") {
		fmt.Println(e.Key, e.Value.Total, err) // 2026/17 42.5 <nil>
	}
	// Output: 2026/17 42.5 <nil>
}

// Several stores and your own SQL share a writer, so their writes share transactions.
func ExampleNewEngine() {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "ephemeral"))
	defer os.RemoveAll(dir)
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "app.db"), sqlitewriter.Options{MaxReaders: 8}))
	defer w.Close()
	engine := core.Must(sqlite.NewEngine(ctx, w, "orders"))
	orders := core.Must(data.New[string](engine, data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	err := orders.Save(ctx, "2026/17", Order{"2026/17", 42.5})
	var id string
	row := w.DB().QueryRowContext(ctx, "select value ->> '$.id' from orders where value ->> '$.total' > 40")
	fmt.Println(err, row.Scan(&id), id)
	// Output: <nil> <nil> 2026/17
}
