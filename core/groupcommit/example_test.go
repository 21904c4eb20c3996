package groupcommit_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

func Example() {
	saved := map[string]int{} // stands for a database
	c, err := groupcommit.New(func(ctx context.Context, names []string, errs []error) error {
		for _, name := range names { // one transaction
			saved[name]++
		}
		return nil
	}, groupcommit.Options{})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wg.Go(func() {
			if err := c.Do(context.Background(), name); err != nil { // nil: it is saved
				panic(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(saved)
	// Output: map[a:1 b:1 c:1]
}
