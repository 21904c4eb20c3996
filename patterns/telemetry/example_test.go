package telemetry_test

import (
	"context"
	"errors"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in a program: an exporter
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))

	sink := signals.NewSink(signals.SinkOptions{})
	tel := core.Must(telemetry.New(sink, telemetry.Options{TracerProvider: tracing, Signals: "error.*, circuit.*"}))
	defer tel.Close()

	callAPI := func(ctx context.Context, user string) error {
		core.OperationFrom(ctx).Raise("error.timeout")
		return errors.New("no answer for " + user)
	}
	c := core.Must(core.NewCoordinator(telemetry.Wrap(tel, callAPI), core.Options{Name: "api", Sink: sink}))
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
