package file_test

import (
	"context"
	"fmt"
	"os"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/file"
	"github.com/ephemeralgo/ephemeral/core"
)

type Order struct {
	ID    string
	Total float64
}

func Example() {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "orders"))
	defer os.RemoveAll(dir)
	orders := core.Must(file.Open[string](ctx, dir, data.Options[Order]{Name: "orders"}))
	defer orders.Close()

	if err := orders.Save(ctx, "2026/17", Order{"2026/17", 42.5}); err != nil {
		panic(err) // if it is nil, the order survives a power cut
	}
	order, ok, err := orders.Load(ctx, "2026/17")
	fmt.Println(order.Total, ok, err) // 42.5 true <nil>
	// Output: 42.5 true <nil>
}
