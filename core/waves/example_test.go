package waves_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/waves"
)

// Two detectors look at what a user has sent. When both have voted, a judge gives
// the verdict, and that is the end of it.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})

	suspicious := func(context.Context, signals.Signal) error { return nil }
	judge := func(ctx context.Context, vote signals.Signal) error {
		if sink.Count("vote.*") == 2 {
			sink.Because(vote).RaiseKey("verdict.bot", vote.Key)
		}
		return nil
	}

	bots, err := waves.New([]waves.Stage{
		{Name: "lexical", Trigger: "content.received", Work: suspicious, OnComplete: "vote.lexical"},
		{Name: "behavior", Trigger: "content.received", Work: suspicious, OnComplete: "vote.behavior"},
		{Name: "judge", Trigger: "vote.*", Work: judge},
	}, "verdict.*", core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	defer bots.Close()
	bots.Start()

	sink.RaiseKey("content.received", "user-123")
	exit, err := sink.WaitFor(context.Background(), earlyexit.SignalExited)
	if err != nil {
		panic(err)
	}
	verdict, _ := bots.Exited()
	fmt.Println(exit.Key, verdict.Name, "because of", verdict.Path()[0])
	// Output:
	// user-123 verdict.bot because of content.received
}

// What failed, and why, is in the payload.
func ExampleEvent() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Subscribe(waves.Failed.Name(), func(s signals.Signal) {
		event := s.Payload().(waves.Event)
		fmt.Println(event.Stage, "of", s.Key+":", event.Err)
	})

	orders, err := waves.New([]waves.Stage{{
		Name:    "charge",
		Trigger: "order.placed",
		Work: func(context.Context, signals.Signal) error {
			return fmt.Errorf("the card has expired")
		},
	}}, "", core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	orders.Start()
	sink.RaiseKey("order.placed", "order-7")
	if err := orders.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// charge of order-7: the card has expired
}
