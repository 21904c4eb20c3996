package earlyexit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Several checks look at a comment. The first that is sure ends the others.
func Example() {
	check := func(ctx context.Context, name string) (int, error) {
		switch name {
		case "links":
			return 30, nil
		case "blocklist":
			core.OperationFrom(ctx).Raise("verdict.spam")
			return 100, nil
		}
		return 10, nil
	}
	highest := func(exit signals.Signal, scores []int) (int, error) { return slices.Max(scores), nil }

	checks, err := earlyexit.New(check, "verdict.*", highest, core.Options{MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer checks.Close()

	ctx := context.Background()
	for _, name := range []string{"links", "language", "blocklist", "history", "model"} {
		if _, err := checks.Enqueue(ctx, name); err != nil {
			break // the verdict has come already
		}
	}
	outcome, err := checks.Results(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(outcome.Exited, outcome.Signal.Name, outcome.Results, outcome.Combined)
	// Output: true verdict.spam [30 10 100] 100
}

// A signal from outside ends coordinators on its sink. The cause names the signal.
func ExampleOn() {
	sink := signals.NewSink(signals.SinkOptions{})
	started := make(chan struct{})
	downloads := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		close(started)
		<-ctx.Done()
		if exited, ok := errors.AsType[*earlyexit.ExitedError](context.Cause(ctx)); ok {
			fmt.Println("ended by", exited.Signal.Name)
		}
		return context.Cause(ctx)
	}, core.Options{Sink: sink}))
	thumbnails := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Sink: sink}))
	for _, part := range []earlyexit.Target{downloads, thumbnails} {
		earlyexit.On(part, "user.left")
	}

	if _, err := downloads.Enqueue(context.Background(), "a.example"); err != nil {
		panic(err)
	}
	<-started
	sink.Raise("user.left")
	if err := downloads.Drain(context.Background()); err != nil {
		panic(err)
	}
	_, err := thumbnails.Enqueue(context.Background(), "a.example")
	fmt.Println(errors.Is(err, core.ErrClosed))
	// Output:
	// ended by user.left
	// true
}
