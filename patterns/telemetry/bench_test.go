package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// The benchmark shows the cost of a span without an exporter, in the body of an operation:
// written by hand, and by Wrap. Run it with
//
//	go test -run '^$' -bench Unexported -count 10
func BenchmarkUnexported(b *testing.B) {
	tel := core.Must(telemetry.New(signals.NewSink(signals.SinkOptions{}), telemetry.Options{}))
	defer tel.Close()
	tracer := otel.Tracer("bench")
	nothing := func(context.Context, int) error { return nil }
	byHand := func(ctx context.Context, n int) error {
		ctx, span := tracer.Start(ctx, core.OperationFrom(ctx).Source())
		defer span.End()
		return nothing(ctx, n)
	}
	wrapped := telemetry.Wrap(tel, nothing)
	for name, work := range map[string]core.Work[int]{"Start": byHand, "Wrap": wrapped, "Bare": nothing} {
		b.Run(name, func(b *testing.B) {
			c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
				b.ReportAllocs()
				for b.Loop() {
					work(ctx, 0)
				}
				return nil
			}, core.Options{Name: "api"}))
			defer c.Close()
			if err := c.Do(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		})
	}
}
