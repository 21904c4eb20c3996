package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// order is work of a customer. A fixed sequence decides how long it takes, and whether it
// fails.
type order struct {
	ID       int
	Customer string
	Takes    time.Duration
	Declined bool
}

func (o order) customer() string { return o.Customer }

// mail says that an order was shipped.
type mail struct {
	Order   int
	Bounces bool
}

// load is work that the status page shows: orders of some customers in three lanes, mails
// in a durable queue, and schedules that sometimes close gates of the orders.
type load struct {
	orders *core.Coordinator[order]
	plan   *scheduledtasks.Scheduler
	mails  *durable.Queue[mail]
	served chan error // receives what Run of the mails returns
}

// schedules close gates for 3 seconds: each holds its signal.
var schedules = []scheduledtasks.Definition{
	{Name: "maintenance", Cron: "@every 40s", Signal: "maintenance.begun", Description: "no order starts meanwhile"},
	{Name: "inventory", Cron: "@every 15s", Signal: "inventory.begun", Description: "no slow order starts meanwhile"},
}

func newLoad(sink *signals.Sink) (*load, error) {
	l := &load{served: make(chan error, 1)}
	var errs [3]error
	l.orders, errs[0] = core.NewKeyedCoordinator(order.customer, l.ship, core.Options{
		Name: "orders", Sink: sink, MaxConcurrency: 8, MaxQueued: 40,
		DeferOn: "maintenance.begun",
		Lanes:   []core.Lane{{Name: "hot", Limit: 4}, {Name: "normal"}, {Name: "slow", Limit: 2, DeferOn: "inventory.begun"}},
	})
	l.mails, errs[1] = durable.New[mail, string](durable.Memory(), nil, l.send, durable.Options{
		Name: "mails", Sink: sink, MaxConcurrency: 2,
		Keep: durable.Keep{Done: time.Minute, Dead: 5 * time.Minute, Cancelled: time.Minute},
	})
	closeGate := scheduledtasks.TargetFunc(func(_ context.Context, task scheduledtasks.Task) error {
		sink.Hold(task.Signal, task.Name, 3*time.Second)
		return nil
	})
	l.plan, errs[2] = scheduledtasks.New(schedules, closeGate, scheduledtasks.Options{Name: "plan", Sink: sink})
	return l, errors.Join(errs[:]...)
}

// ship is the work of an order.
func (l *load) ship(ctx context.Context, o order) error {
	op := core.OperationFrom(ctx)
	defer op.WaitsFor(fmt.Sprintf("the warehouse, order %d", o.ID), time.Now().Add(o.Takes))()
	if err := sleep(ctx, o.Takes); err != nil {
		return err
	}
	if o.Declined {
		op.Raise("order.failed")
		return errors.New("the card was declined")
	}
	op.Raise("order.shipped")
	if o.ID%10 != 0 {
		return nil
	}
	_, err := l.mails.Enqueue(ctx, mail{Order: o.ID, Bounces: o.ID%400 == 10})
	return err
}

// send is the work of a mail.
func (l *load) send(ctx context.Context, m mail) error {
	if m.Bounces {
		return durable.Permanent(errors.New("the address is unknown"))
	}
	return sleep(ctx, 200*time.Millisecond)
}

// run produces orders until ctx ends. At times there are more than can be shipped, so that it
// waits for room.
func (l *load) run(ctx context.Context) {
	go func() { l.served <- l.mails.Run(context.WithoutCancel(ctx)) }()
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; ; n++ {
		o := order{
			ID: n, Customer: fmt.Sprintf("customer-%02d", random.IntN(30)),
			Takes: time.Duration(50+random.IntN(400)) * time.Millisecond, Declined: random.IntN(20) == 0,
		}
		lane := []string{"hot", "normal", "normal", "normal", "slow"}[random.IntN(5)]
		pause := 20 * time.Millisecond
		if n/500%2 == 1 {
			pause = 80 * time.Millisecond
		}
		_, err := l.orders.Lane(lane).Enqueue(ctx, o)
		if errors.Is(err, core.ErrClosed) || sleep(ctx, pause) != nil {
			return
		}
	}
}

// stop ends the mails. The orders have used them until now.
func (l *load) stop(ctx context.Context) error {
	return errors.Join(l.mails.Stop(ctx), <-l.served)
}

// sleep returns early, with the cause, when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
