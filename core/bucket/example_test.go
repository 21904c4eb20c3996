package bucket_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// Work is booked ahead, and starts when its tokens are due.
func Example() {
	now := func() int64 { return 0 } // a program: the nanoseconds since its start

	m := bucket.Start(0, 100, 2) // 100 a second, a burst of 2
	var mark bucket.Mark         // full
	for range 4 {
		from := now()
		at := m.Due(mark, 1, from)
		m.Book(&mark, 1, from, at)
		fmt.Println(time.Duration(at - from).Round(10 * time.Millisecond))
	}
	fmt.Println(m.Take(&mark, now(), 1))
	// Output:
	// 0s
	// 0s
	// 10ms
	// 20ms
	// false
}
