// Command planted has a mistake in each line with a comment that wants one.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check/testdata/names"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

type server struct {
	sink   *signals.Sink
	orders *core.Coordinator[string]
}

func main() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Hold(names.Closed, "north", 0) // want `Hold without a lease`
	//ephemeral:ignore
	sink.Hold(names.Closed, "south", 0)
	defer sink.Hold(names.Closed, "west", 0)() // released at the end
	sink.Hold(names.Closed, "east", 1)

	s := &server{sink: sink}
	s.orders = core.Must(core.NewCoordinator(s.ship, core.Options{
		Sink:     sink,
		CancelOn: "wharehouse.closed", // want `CancelOn of s.orders: nothing raises "wharehouse.closed"; did you mean "warehouse.closed" \(testdata/planted/main.go:25\)`
		DeferOn:  names.Closed + ", circuit.open.*, operation.panicked",
		Lanes:    []core.Lane{{Name: "hot"}, {Name: "slow", DeferOn: "order.shiped"}}, // want `"order.shiped"; did you mean "order.shipped"`
		Classes:  []core.Class{{Name: "stripe"}},
	}))
	s.orders.Lane("hto").Enqueue(ctx, "1")       // want `Lane of s.orders: its options have no lane "hto"; did you mean "hot"`
	s.orders.Class("strpe").TryEnqueue(ctx, "2") // want `its options have no class "strpe"; did you mean "stripe"`
	s.orders.Lane("hot")                         // want `Lane returns a view`
	s.orders.Cost(3)                             // want `Cost returns a view`
	s.orders.Lane("slow").Class("stripe").Enqueue(ctx, "3")

	for _, family := range []string{"order.*", "ordre.*"} { // want `"ordre.\*"; did you mean "order.\*"`
		sink.Subscribe(family, print)
	}
	subscribe(sink, "audit.order.shipped")
	subscribe(sink, "retry.exhausted")
	subscribe(sink, "retry.exhuasted") // want `did you mean "retry.exhausted" \(atoms/retry\)`
	subscribe(sink, "shop.*.*.ready")  // by the view below
	subscribe(sink, "shop.*.ready.*")  // want `nothing raises "shop.\*.ready.\*"`
	sink.Scoped("shop", "*", "*").Raise("ready")
	names.Announce(sink, "stock", "empty")
	names.Announce(core.OperationFrom(ctx), "price", "changed")
	subscribe(sink, "stock.changed, price.changed") // want `nothing raises "stock.changed"`

	breaker := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "api", Failure: "api.falied"})) // want `Failure of "api": nothing raises "api.falied"; did you mean "api.failed"`
	defer breaker.Close()
	sink.Raise("api.failed")
	subscribe(sink, circuitbreaker.SignalOpen+".api")
	subscribe(sink, circuitbreaker.SignalOpen+".apy") // want `did you mean "circuit.open.api"`

	names.Saved.Raise(sink, "a", names.File{})
	sink.Raise("thumbnail.done") // want `"thumbnail.done" is raised without a payload, but Subscribe at testdata/planted/main.go:67 wants one`
	done := signals.NewKind[int]("thumbnail.done")
	done.Subscribe(sink, func(signals.Signal, int) {})
	signals.NewKind[string]("file.saved").Subscribe(sink, func(signals.Signal, string) {}) // want `"file.saved" has the payload string here, and names.File at testdata/names/names.go:15`
	signals.NewKind[string]("retry.exhausted").Subscribe(sink, nil)                        // want `"retry.exhausted" has the payload string here, and retry.Event in atoms/retry`
	signals.NewKind[retry.Event]("retry.exhausted").Subscribe(sink, nil)

	other := core.Must(core.NewCoordinator(s.ship, core.Options{Sink: sink, Lanes: core.Must(core.ParseLanes("fast:2, late"))}))
	other.Lane("fast").Enqueue(ctx, "4")
	other.Lane("hot").Enqueue(ctx, "5") // want `its options have no lane "hot"`
	mails, _ := core.NewCoordinator(s.ship, core.Options{Sink: sink})
	mails.Class("stripe").Lane("late").Enqueue(ctx, "6") // want `no (class "stripe"|lane "late")`

	var own *core.Coordinator[int]
	own = core.Must(core.NewCoordinator(func(inner context.Context, n int) error {
		future, _ := own.Submit(inner, n)
		future.Wait(ctx) // want `Wait waits for the coordinator (own|s.orders), whose body this is`
		future.Wait(inner)
		limited, cancel := context.WithTimeout(inner, 1)
		defer cancel()
		own.Do(limited, n)
		return own.Do(ctx, n-1) // want `Do waits for the coordinator (own|s.orders), whose body this is`
	}, core.Options{}))

	_, err := jobs.New(sink, []jobs.Job{
		jobs.OnKind(names.Saved, func(context.Context, signals.Signal, names.File) error { return nil }, jobs.Options{EmitOnComplete: "scan.done"}),
		jobs.On("scan.donne", nil, jobs.Options{Name: "scan"}), // want `On: nothing raises "scan.donne"; did you mean "scan.done"`
	}, core.Options{})
	fmt.Println(err)

	//ephemeral:raises config.*
	sink.Raise(os.Getenv("NAME"))
	subscribe(sink, "config.reloaded")
	_, _ = retry.New(retry.Options{})
	lanes(ctx, sink)
}

func (s *server) ship(ctx context.Context, id string) error {
	s.orders.Do(context.Background(), id+"'") // want `Do waits for the coordinator (own|s.orders), whose body this is`
	s.orders.Do(ctx, id+"''")
	go s.orders.Drain(context.Background())
	core.OperationFrom(ctx).RaiseKey("order.shipped", id)
	return nil
}

func subscribe(sink *signals.Sink, pattern string) { sink.Subscribe(pattern, print) }

func print(s signals.Signal) {
	switch s.Name {
	case "order.shipped", "order.shippped": // want `a comparison with the name of a signal: nothing raises "order.shippped"`
	}
	if name := s.Name; name == "order.shippd" { // want `a comparison with the name of a signal: nothing raises "order.shippd"`
		return
	}
	if signals.Match("order.lots", s.Name) || s.Matches("order.*") { // want `Match: nothing raises "order.lots"`
		return
	}
	fmt.Println(signals.Match("any.text", "another.text"))
	core.OperationFrom(context.Background()).Raise(names.Prefix + "." + s.Name)
}
