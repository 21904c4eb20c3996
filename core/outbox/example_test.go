package outbox_test

import (
	"fmt"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// A counter reports each value, in order, and holds no lock meanwhile.
func Example() {
	var (
		mu    sync.Mutex
		count int
		out   outbox.Outbox
	)
	increment := func() {
		mu.Lock()
		count++
		now := count
		out.Add(func() { fmt.Println("count is", now) })
		mu.Unlock()
		out.Run()
	}
	increment()
	increment()
	// Output:
	// count is 1
	// count is 2
}
