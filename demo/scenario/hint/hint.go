// Package hint shows the second of three ways to use signals: context and hint. The name of a
// signal has a hint, here the number of an order. A listener starts from the hint. Before it
// does something that cannot be undone, it asks the atom.
package hint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario places three orders. The payment of one is declined after its signal.
var Scenario = scenario.Scenario{
	Name:  "hint",
	Title: "Context and hint: begin with the hint, verify with the atom",
	Run:   run,
}

const declined = "ORD-124"

func run(ctx context.Context, s *scenario.Screen) error {
	// This is the atom. Each order.place becomes one of its operations.
	orders, err := core.NewCoordinator(place, core.Options{Name: "orders", MaxConcurrency: 1, Sink: s.Sink})
	if err != nil {
		return err
	}
	defer orders.Close()
	defer s.Sink.Subscribe("order.place", func(request signals.Signal) {
		if _, err := orders.Enqueue(signals.CausedBy(ctx, request), request.Key); err != nil {
			s.Printf("order:  %s is not accepted: %v", request.Key, err)
		}
	})()

	// The listener sends mails in the background, so that orders do not wait for mails.
	mails, err := core.NewDispatcher(core.Options{Name: "mails", Sink: s.Sink})
	if err != nil {
		return err
	}
	defer mails.Close()
	defer s.Sink.Subscribe("order.placed:*", mails.Dispatch)()
	mails.Handle("order.placed:*", func(ctx context.Context, placed signals.Signal) error {
		id, _ := placed.Arg()
		s.Printf("mail:   hint %s, writing the mail", id)
		err := orders.Wait(ctx, placed.Operation)
		switch {
		case ctx.Err() != nil: // the scenario was stopped
			return err
		case err != nil:
			s.Printf("mail:   %s is not sent, the atom says: %v", id, err)
			return err
		}
		s.Printf("mail:   %s is sent, the atom has %d paid", id, orders.Stats().Succeeded)
		return nil
	})

	for _, id := range []string{"ORD-123", declined, "ORD-125"} {
		s.Printf("raise order.place, about %s", id)
		s.Sink.RaiseKey("order.place", id)
		if err := scenario.Pause(ctx, 85*time.Millisecond); err != nil {
			return err
		}
	}
	if err := core.InOrder(orders, mails).Drain(ctx); err != nil {
		return err
	}
	hints, sent, paid := mails.Stats().Enqueued, mails.Stats().Succeeded, orders.Stats().Succeeded
	if hints != 3 || sent != 2 || paid != 2 {
		return fmt.Errorf("hint: %d hints, %d mails sent and %d orders paid, not 3, 2 and 2", hints, sent, paid)
	}
	s.Takeaway("%d hints, %d mails: the atom knew that %s was not paid", hints, sent, declined)
	return nil
}

// place is the work of the atom. The order is placed before it is paid.
func place(ctx context.Context, id string) error {
	if err := scenario.Pause(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	core.OperationFrom(ctx).Raise("order.placed:" + id)
	if err := scenario.Pause(ctx, 15*time.Millisecond); err != nil {
		return err
	}
	if id == declined {
		return errors.New("card declined")
	}
	return nil
}
