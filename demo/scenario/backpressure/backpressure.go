// Package backpressure shows how a slow consumer slows down a fast producer, without a lost
// item.
package backpressure

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
)

// Scenario produces 15 items about twice as fast as they are consumed.
var Scenario = scenario.Scenario{
	Name:  "backpressure",
	Title: "Backpressure: a slow consumer slows down the producer",
	Run:   run,
}

const (
	items   = 15
	produce = 50 * time.Millisecond
	consume = 2*produce + 4*time.Millisecond // so that the consumer and the producer never act at the same moment
	limit   = 5                              // items that may wait for the consumer
)

func run(ctx context.Context, s *scenario.Screen) error {
	consumer, err := core.NewCoordinator(func(ctx context.Context, _ int) error {
		select {
		case <-time.After(consume):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, core.Options{Name: "consumer", Sink: s.Sink, MaxConcurrency: 1})
	if err != nil {
		return err
	}
	// When 5 items wait, Watch holds backpressure.consumer, until only 2 items wait.
	defer backpressure.Watch(consumer, backpressure.Watermarks{High: limit, Low: limit / 2})()

	// While that signal is held, the intake starts nothing. The intake's queue has room for
	// one item, so that Enqueue of the producer waits as well.
	var longest atomic.Int64
	intake, err := backpressure.New(func(ctx context.Context, item int) error {
		_, err := consumer.Enqueue(ctx, item)
		longest.Store(max(longest.Load(), int64(consumer.Stats().Pending)))
		return err
	}, core.Options{Name: "intake", Sink: s.Sink, MaxConcurrency: 1, MaxQueued: 1})
	if err != nil {
		return err
	}
	stages := core.InOrder(intake, consumer)
	defer stages.Close()

	var pressed atomic.Int64
	defer s.Sink.Subscribe(backpressure.Pattern, func(signals.Signal) {
		pressed.Add(1)
		s.Printf("pressure begins: %d items wait for the consumer", consumer.Stats().Pending)
	})()
	defer s.Sink.SubscribeRetracted(backpressure.Pattern, func(signals.Retraction) {
		s.Printf("pressure ends: %d items wait for the consumer", consumer.Stats().Pending)
	})()

	s.Printf("an item each %v, and %v to consume one; at most %d may wait", produce, consume, limit)
	tick := time.NewTicker(produce)
	defer tick.Stop()
	var blocked time.Duration
	for item := 1; item <= items; item++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		begin := time.Now()
		id, err := intake.Enqueue(ctx, item)
		if err != nil {
			return err
		}
		s.Sink.Raise("item.produced")
		if waited := time.Since(begin); waited >= produce {
			blocked += waited
			s.Printf("the producer waited %v to enqueue item %d", waited.Round(time.Millisecond), item)
		}
		if why, _ := intake.Explain(id); len(why.Reasons) > 0 {
			s.Printf("item %d waits: %v", item, why.Reasons[0].Signal.Name)
		}
	}
	s.Printf("all produced, %d consumed", consumer.Stats().Succeeded)
	if err := stages.Drain(ctx); err != nil {
		return err
	}
	if pressed.Load() == 0 || blocked == 0 || longest.Load() > limit {
		return errors.New("backpressure: the consumer did not slow down the producer")
	}
	s.Takeaway("%d produced, %d consumed; at most %d waited; the producer was held up %v",
		intake.Stats().Succeeded, consumer.Stats().Succeeded, longest.Load(), blocked.Round(time.Millisecond))
	return nil
}
