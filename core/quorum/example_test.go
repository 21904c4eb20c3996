package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/quorum"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Three replicas store a record. The record is safe when two of them have stored it.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	replicas, err := core.NewCoordinator(func(ctx context.Context, replica string) error {
		if replica == "oslo" {
			return errors.New("disk full")
		}
		core.OperationFrom(ctx).RaiseKey("record.stored", replica)
		return nil
	}, core.Options{MaxConcurrency: 1, Sink: sink})
	if err != nil {
		panic(err)
	}
	defer replicas.Close()

	ctx := context.Background()
	for _, replica := range []string{"bergen", "oslo", "tromsø"} {
		if _, err := replicas.Enqueue(ctx, replica); err != nil {
			panic(err)
		}
	}
	result, err := quorum.Wait(ctx, sink, "record.stored", 2, quorum.Options{
		CancelOn: "record.conflict",
		Timeout:  2 * time.Second,
		Within:   time.Minute, // some replicas may have voted already
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("safe:", result.Reached)
	for _, vote := range result.Votes {
		fmt.Println(vote.Key)
	}
	// Output:
	// safe: true
	// bergen
	// tromsø
}

// Detectors vote on users. The name of a vote is its voter, and its key is the user. A
// verdict on the user, from any code, ends the wait.
func ExampleOptions() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.RaiseKey("vote.lexical", "user-123")
	sink.RaiseKey("vote.lexical", "user-123") // again
	sink.RaiseKey("vote.behavior", "user-999")
	time.AfterFunc(time.Millisecond, func() {
		sink.RaiseKey("verdict.human", "user-123")
	})

	result, err := quorum.Wait(context.Background(), sink, "vote.*", 2, quorum.Options{
		Key:      "user-123",
		CancelOn: "verdict.*",
		Within:   time.Minute,
	})
	if err != nil {
		panic(err)
	}
	switch {
	case result.Reached:
		sink.RaiseKey("verdict.bot", "user-123")
	case result.Cancelled:
		fmt.Println(result.By.Name, "after", len(result.Votes), "vote")
	}
	// Output:
	// verdict.human after 1 vote
}
