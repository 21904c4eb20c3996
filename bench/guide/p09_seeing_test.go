package guide_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
)

func Example_explain() {
	sink := signals.NewSink(signals.SinkOptions{})
	started := make(chan bool)
	ship := func(ctx context.Context, customer string) error {
		started <- true
		<-ctx.Done() // until Close
		return nil
	}
	customer := func(customer string) string { return customer }
	orders := core.Must(core.NewKeyedCoordinator(customer, ship, core.Options{Sink: sink, DeferOn: "warehouse.closed"}))
	defer orders.Close()

	ctx := context.Background()
	core.Must(orders.Enqueue(ctx, "ada"))
	<-started
	defer sink.Hold("warehouse.closed", "north", 0)()
	second := core.Must(orders.Enqueue(ctx, "ada"))
	why, found := orders.Explain(second)
	fmt.Println(found, why.Status)
	for _, reason := range why.Reasons {
		fmt.Printf("%s: %s\n", reason.Kind, reason.Key+reason.Signal.Name)
	}
	// Output:
	// true pending
	// key: ada
	// deferred: warehouse.closed
}

func Example_logging() {
	sink := signals.NewSink(signals.SinkOptions{})
	text := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	bridge := core.Must(logging.NewBridge(sink, text, logging.BridgeOptions{Pattern: "error.*, circuit.*"}))
	sink.RaiseKey("error.payment", "order-1")
	sink.RaiseKey("payment.accepted", "order-2") // does not match the pattern
	if err := bridge.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// level=ERROR msg=error.payment signal.name=error.payment signal.key=order-1
}

// withoutTime removes the time, so that the example always prints the same.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindTime {
		return slog.Attr{}
	}
	return a
}
