package guide_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// It has no output, because it waits for a signal: see TestMainEndsAtSIGTERM.
func Example_main() {
	address := flag.String("listen", "localhost:8080", "address of the server")
	grace := flag.Duration("grace", 20*time.Second, "how long accepted work may take after SIGTERM")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second SIGTERM ends the program at once

	// Parts that must end last come first.
	sink := signals.NewSink(signals.SinkOptions{})
	handler := slog.NewTextHandler(printer{}, nil) // in a program: os.Stderr
	reader := metric.NewPeriodicReader(printer{})  // in a program: an exporter of OpenTelemetry
	logs := core.Must(logging.NewBridge(sink, handler, logging.BridgeOptions{Pattern: "order.*, mail.*"}))
	metrics := metric.NewMeterProvider(metric.WithReader(reader))
	tel := core.Must(telemetry.New(sink, telemetry.Options{MeterProvider: metrics}))

	mails := core.Must(core.NewCoordinator(send, core.Options{Name: "mails", Sink: sink}))
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		if err := ship(ctx, order); err != nil {
			return err
		}
		core.OperationFrom(ctx).RaiseKey("order.shipped", order)
		_, err := mails.Enqueue(ctx, order+" is on its way")
		return err
	}, core.Options{Name: "orders", Sink: sink}))
	core.Must(telemetry.Observe(tel, "coordinator", "orders", orders)) // ObserveCoordinator would end with the coordinator

	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := orders.Enqueue(r.Context(), r.FormValue("order")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})}
	listener := core.Must(net.Listen("tcp", *address))
	fmt.Println("listening on", listener.Addr())
	go server.Serve(listener)

	<-ctx.Done()
	deadline, cancel := context.WithTimeout(context.Background(), *grace)
	defer cancel()
	err := server.Shutdown(deadline)                               // 1. no more requests
	err = errors.Join(err, core.Shutdown(deadline, orders, mails)) // 2. accepted work ends
	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Println(op.Item, "failed:", op.Err) // 3. while the windows still have the failures
	}
	last, cancelLast := context.WithTimeout(context.Background(), 5*time.Second) // the first deadline may be over
	defer cancelLast()
	err = errors.Join(err, core.Shutdown(last, logs), metrics.Shutdown(last)) // 4. the last signals and metrics
	if err != nil {
		log.Fatal(err)
	}
}

// ship and send are the bodies of the example.
func ship(_ context.Context, order string) error {
	switch order {
	case "slow":
		time.Sleep(50 * time.Millisecond)
	case "broken":
		return errors.New("no such shelf")
	case "stuck":
		select {} // the body ignores its context
	}
	return nil
}

func send(ctx context.Context, mail string) error {
	core.OperationFrom(ctx).RaiseKey("mail.sent", mail)
	return nil
}

// printer prints records and metrics. A record takes as long as over a network.
type printer struct{}

func (printer) Write(record []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return os.Stdout.Write(record)
}

func (printer) Temporality(k metric.InstrumentKind) metricdata.Temporality {
	return metric.DefaultTemporalitySelector(k)
}

func (printer) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

func (printer) Export(_ context.Context, all *metricdata.ResourceMetrics) error {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				fmt.Println("metric:", m.Name, sum.DataPoints[0].Value)
			}
		}
	}
	return nil
}

func (printer) ForceFlush(context.Context) error { return nil }
func (printer) Shutdown(context.Context) error   { return nil }
