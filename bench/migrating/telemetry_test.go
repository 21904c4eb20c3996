package migrating_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// Signals are counted by their class.
func Example_telemetry() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	reader := sdkmetric.NewManualReader() // in a program: an exporter
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tel, err := telemetry.New(sink, telemetry.Options{MeterProvider: metrics, Signals: "*"})
	if err != nil {
		panic(err)
	}
	defer tel.Close()

	requests, err := core.NewCoordinator(func(ctx context.Context, signal string) error {
		core.OperationFrom(ctx).Raise(signal)
		return nil
	}, core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	defer requests.Close()
	for _, signal := range []string{"error.timeout", "perf.query:12ms", "order.shipped", "error.timeout"} {
		if err := requests.Do(ctx, signal); err != nil {
			panic(err)
		}
	}

	var exported metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &exported); err != nil {
		panic(err)
	}
	for _, m := range exported.ScopeMetrics[0].Metrics {
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			fmt.Println(m.Name, point.Attributes.Encoded(attribute.DefaultEncoder()), point.Value)
		}
	}
	// Unordered output:
	// ephemeral.signals class=event,family=*,signal=order.shipped 1
	// ephemeral.signals class=exception,family=*,signal=error.timeout 2
	// ephemeral.signals class=metric,family=*,signal=perf.query 1
}
