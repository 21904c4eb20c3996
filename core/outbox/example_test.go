package outbox_test

import (
	"fmt"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// A counter says each value it reaches, in order, without its lock held.
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
