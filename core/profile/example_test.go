package profile_test

import (
	"context"
	"fmt"
	"runtime/pprof"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/profile"
)

func ExampleWrap() {
	upload := func(ctx context.Context, file string) error {
		coordinator, _ := pprof.Label(ctx, profile.LabelCoordinator)
		fmt.Println(file, "is part of", coordinator, "in each profile")
		return nil
	}
	uploads := core.Must(core.NewCoordinator(profile.Wrap(upload), core.Options{Name: "uploads"}))
	core.Must(uploads.Enqueue(context.Background(), "a.txt"))
	if err := uploads.Drain(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: a.txt is part of uploads in each profile
}
