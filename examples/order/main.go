// Command order is an order that takes its time: it reserves, charges, waits until somebody approves, sends parcels, and is undone if it is
// refused. It goes on where it stopped, also after the program is stopped in the middle.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// An order is an item of the queue, and its ID is the key: not that of the customer, whose other orders would wait, too.
type order struct {
	ID      string
	Parcels []string
}

func (o order) key() string { return o.ID }

// A shop has the bodies of the flows. What they call is outside: a warehouse, a bank.
type shop struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *shop) says(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

var errRefused = errors.New("the order was refused")

// ship is the body. Steps that were done answer from the database; only code between steps runs again.
func (s *shop) ship(ctx context.Context, o order) error {
	shelf, err := flow.Do(ctx, flow.Step[string]{
		Name: "reserve",
		Do: func(context.Context) (string, error) {
			s.says("%s: reserve", o.ID)
			return "shelf 7", nil
		},
		Compensate: func(_ context.Context, shelf string, known bool) error { // known is false: perhaps it was not reserved
			s.says("%s: free %s (%v)", o.ID, shelf, known)
			return nil
		},
	})
	if err != nil {
		return err
	}
	charged, err := flow.Do(ctx, flow.Step[int]{
		Name: "charge", Class: "bank", // as often as the bank allows, over all processes
		Do: func(context.Context) (int, error) {
			s.says("%s: charge", o.ID)
			return 100 * len(o.Parcels), nil
		},
		Compensate: func(_ context.Context, charged int, known bool) error {
			s.says("%s: refund %d (%v)", o.ID, charged, known)
			return nil
		},
	})
	if err != nil {
		return err
	}
	said, err := flow.Await(ctx, "approval", "approval.given, approval.refused", 48*time.Hour)
	if err != nil {
		return err // parked: a row in the database, and nothing in this process
	}
	if said.Name == "approval.refused" {
		return durable.Permanent(errRefused) // refund, then free
	}
	sent, err := flow.Each(ctx, "send", o.Parcels, 2, func(_ context.Context, parcel string) (string, error) {
		return "sent " + parcel, nil
	})
	if err != nil {
		return err
	}
	if err := flow.Sleep(ctx, "survey", 10*time.Millisecond); err != nil {
		return err
	}
	s.says("%s: %s, %d, %v", o.ID, shelf, charged, sent)
	return nil
}

// open starts a process of the shop. Stop ends it.
func (s *shop) open(ctx context.Context, dir string) (orders *durable.Queue[order], stop func()) {
	file := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "orders.db"), sqlitewriter.Options{}))
	store := core.Must(sqlite.Open(ctx, file, sqlite.Options{}))
	orders = core.Must(durable.New(store, order.key, s.ship, durable.Options{
		Name: "orders", Poll: 10 * time.Millisecond,
		Classes: []durable.Class{{Name: "bank", Rate: core.Rate{PerSecond: 50}}},
	}))
	ran := make(chan error, 1)
	go func() { ran <- orders.Run(ctx) }()
	return orders, func() {
		if err := errors.Join(orders.Close(), <-ran, file.Close()); err != nil {
			panic(err)
		}
	}
}

// show runs two orders, and stops the program while they wait for approval.
func show(out io.Writer) error {
	ctx := context.Background()
	dir := core.Must(os.MkdirTemp("", "order"))
	defer os.RemoveAll(dir)
	s := &shop{out: out}

	orders, stop := s.open(ctx, dir)
	first := core.Must(orders.Enqueue(ctx, order{"o-1", []string{"a", "b"}}))
	for why := ""; why == ""; time.Sleep(5 * time.Millisecond) {
		if x := core.Must(orders.Explain(ctx, first)); x.Flow != nil && x.Flow.Wait != nil {
			why = x.String()
			s.says("%.40s", why)
		}
	}
	stop() // for days, if need be

	orders, stop = s.open(ctx, dir)
	defer stop()
	if err := orders.Signal(ctx, "o-1", "approval.given", "ada"); err != nil {
		return err
	}
	if err := orders.WaitAll(ctx, first); err != nil {
		return err
	}
	second := core.Must(orders.Enqueue(ctx, order{"o-2", []string{"c"}}))
	if err := orders.Signal(ctx, "o-2", "approval.refused", "bob"); err != nil {
		return err
	}
	s.says("%v", orders.WaitAll(ctx, second))
	return nil
}

func main() {
	if err := show(os.Stdout); err != nil {
		panic(err)
	}
}
