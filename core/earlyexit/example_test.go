package earlyexit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
)

// Several checks look at a comment; the first that is sure saves the rest.
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
	highest := func(exit core.Signal, scores []int) (int, error) { return slices.Max(scores), nil }

	checks, err := earlyexit.New(check, "verdict.*", highest, core.Options{MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer checks.Close()

	ctx := context.Background()
	for _, name := range []string{"links", "language", "blocklist", "history", "model"} {
		if _, err := checks.Enqueue(ctx, name); err != nil {
			break // there is a verdict already
		}
	}
	outcome, err := checks.Results(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(outcome.Exited, outcome.Signal.Name, outcome.Results, outcome.Combined)
	// Output: true verdict.spam [30 10 100] 100
}

// A signal from outside ends the collection just the same, and the error of a late
// item says which.
func ExampleExitedError() {
	sink := core.NewSink(core.SinkOptions{})
	ask := func(ctx context.Context, server string) (string, error) { return "hello from " + server, nil }
	answers, err := earlyexit.New(ask, "user.left", nil, core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	defer answers.Close()

	sink.Raise("user.left")
	_, err = answers.TryEnqueue(context.Background(), "a.example")
	if exited, ok := errors.AsType[*earlyexit.ExitedError](err); ok {
		fmt.Println("too late:", exited.Signal.Name)
	}
	fmt.Println(errors.Is(err, core.ErrClosed))
	// Output:
	// too late: user.left
	// true
}
