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
