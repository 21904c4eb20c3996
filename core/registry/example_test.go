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

// The jobs of each tenant run in a separate coordinator. The coordinator for mail is
// shared.
func ExampleRegistry_Scope() {
	ctx := context.Background()
	r := registry.New()
	defer r.Close()
	err := registry.Register(r, "mail", func() (*core.Coordinator[string], error) {
		return core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{})
	})
	if err != nil {
		panic(err)
	}
	err = registry.RegisterScoped(r, "jobs", func(scope *registry.Registry) (*core.Coordinator[string], error) {
		mail, err := registry.Get[*core.Coordinator[string]](scope, "mail")
		if err != nil {
			return nil, err
		}
		return core.NewCoordinator(mail.Do, core.Options{})
	})
	if err != nil {
		panic(err)
	}

	for _, tenant := range []string{"a", "b"} {
		scope := r.Scope()
		jobs, err := registry.Get[*core.Coordinator[string]](scope, "jobs")
		if err != nil {
			panic(err)
		}
		if err := jobs.Do(ctx, "report"); err != nil {
			panic(err)
		}
		fmt.Println(tenant, "has done", jobs.Stats().Succeeded)
		scope.Close()
	}
	mail, err := registry.Get[*core.Coordinator[string]](r, "mail")
	if err != nil {
		panic(err)
	}
	fmt.Println(mail.Stats().Succeeded, "mails")
	// Output:
	// a has done 1
	// b has done 1
	// 2 mails
}
