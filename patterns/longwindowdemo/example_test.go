package longwindowdemo_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/patterns/longwindowdemo"
)

func Example() {
	for _, run := range []struct{ items, window int }{{10_000, 50}, {1000, 2000}, {100_000, 100}, {500, 1000}} {
		result, err := longwindowdemo.Run(context.Background(), run.items, run.window, 0)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d items, window %d: %d shown\n", result.Items, result.Window, result.Tracked)
	}
	// Output:
	// 10000 items, window 50: 50 shown
	// 1000 items, window 2000: 1000 shown
	// 100000 items, window 100: 100 shown
	// 500 items, window 1000: 500 shown
}
