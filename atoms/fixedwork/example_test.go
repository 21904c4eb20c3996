package fixedwork_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/atoms/fixedwork"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example() {
	resize := func(ctx context.Context, image string) error {
		if image == "notes.txt" {
			return fmt.Errorf("%s is not an image", image)
		}
		return nil
	}
	pool := core.Must(fixedwork.New(resize, core.Options{MaxConcurrency: 4}))
	defer pool.Close()

	ctx := context.Background()
	for _, image := range []string{"cat.png", "notes.txt", "dog.png"} {
		if _, err := pool.Enqueue(ctx, image); err != nil {
			panic(err)
		}
	}
	if err := pool.Drain(ctx); err != nil {
		panic(err)
	}

	fmt.Println(pool.Stats().Succeeded, "resized") // 2 resized
	for op := range pool.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Status, "because", op.Err) // failed because notes.txt is not an image
	}
	// Output:
	// 2 resized
	// failed because notes.txt is not an image
}
