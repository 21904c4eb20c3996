package registry_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/registry"
)

// Images are resized and then uploaded. The function that makes the coordinator resize gets
// the coordinator upload. So the registry drains resize first.
func Example() {
	ctx := context.Background()
	r := registry.New()
	defer r.Close()

	err := registry.Register(r, "resize", func() (*core.Coordinator[string], error) {
		uploads, err := registry.Get[*core.Coordinator[string]](r, "upload")
		if err != nil {
			return nil, err
		}
		return core.NewCoordinator(func(ctx context.Context, image string) error {
			fmt.Println("resized", image)
			_, err := uploads.Enqueue(ctx, image)
			return err
		}, core.Options{})
	})
	if err != nil {
		panic(err)
	}
	err = registry.Register(r, "upload", func() (*core.Coordinator[string], error) {
		return core.NewCoordinator(func(ctx context.Context, image string) error {
			fmt.Println("uploaded", image)
			return nil
		}, core.Options{})
	})
	if err != nil {
		panic(err)
	}

	images, err := registry.Get[*core.Coordinator[string]](r, "resize")
	if err != nil {
		panic(err)
	}
	if _, err := images.Enqueue(ctx, "cat.png"); err != nil {
		panic(err)
	}
	if err := r.Drain(ctx); err != nil {
		panic(err)
	}
	for name, c := range r.All() {
		fmt.Println(name, c.Stats().Succeeded)
	}
	// Output:
	// resized cat.png
	// uploaded cat.png
	// upload 1
	// resize 1
}
