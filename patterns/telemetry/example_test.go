package telemetry_test

import (
	"context"
	"errors"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in a program: an exporter
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))

	sink := core.NewSink(core.SinkOptions{})
	tel, err := telemetry.New(sink, telemetry.Options{TracerProvider: tracing, Signals: "error.*, circuit.*"})
	if err != nil {
		panic(err)
	}
	defer tel.Close()

	callAPI := func(ctx context.Context, user string) error {
		core.OperationFrom(ctx).Raise("error.timeout")
		return errors.New("no answer for " + user)
	}
	c, err := core.NewCoordinator(telemetry.Wrap(tel, callAPI), core.Options{Name: "api", Sink: sink})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	tel.ObserveCoordinator(c)

	ctx, request := tracing.Tracer("example").Start(ctx, "request")
	c.Do(ctx, "ada")
	request.End()
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, span.Status.Description)
		for _, event := range span.Events {
			fmt.Println("  event", event.Name)
		}
	}
	// Output:
	// api no answer for ada
	//   event error.timeout
	//   event exception
	//   event exception
	// request
}

// Anything with a method Stats can be observed.
func ExampleObserve() {
	reader := sdkmetric.NewManualReader() // in a program: a reader with an exporter
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	sink := core.NewSink(core.SinkOptions{})
	tel := core.Must(telemetry.New(sink, telemetry.Options{MeterProvider: metrics}))
	defer tel.Close()

	stop, err := telemetry.Observe(tel, "sink", "shared", sink)
	if err != nil {
		panic(err)
	}
	defer stop()
	sink.Raise("order.placed")

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "ephemeral.sink.raised" {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output: ephemeral.sink.raised 1
}
