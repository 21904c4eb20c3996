package bench

import (
	"context"

	"go.opentelemetry.io/otel"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// telemetryRows measure telemetry without an exporter of spans. One row is a span in the
// body of an operation, beside a span that the body starts itself. The other is an
// operation of an observed coordinator, beside one without telemetry.
func telemetryRows() []Row {
	tracer := otel.Tracer("bench")
	bare := core.Work[int](nothing)
	byHand := func(ctx context.Context, n int) error {
		ctx, span := tracer.Start(ctx, core.OperationFrom(ctx).Source())
		defer span.End()
		return nothing(ctx, n)
	}
	return []Row{
		{Name: "op=span", MaxAllocs: 4, Sides: []Side{
			inBody("ours", 0, func(t *telemetry.Telemetry) core.Work[int] { return telemetry.Wrap(t, bare) }),
			inBody("Tracer.Start", 1.2, func(*telemetry.Telemetry) core.Work[int] { return byHand }),
			inBody("no-span", 0, func(*telemetry.Telemetry) core.Work[int] { return bare }),
		}},
		{Name: "op=run/unwrapped", MaxAllocs: 1, Sides: []Side{observedRun("ours", 0, true), observedRun("no-telemetry", equal, false)}},
	}
}

// inBody calls work in the body of an operation.
func inBody(name string, goal float64, work func(*telemetry.Telemetry) core.Work[int]) Side {
	return Side{name, goal, func() Body {
		t := core.Must(telemetry.New(signals.NewSink(signals.SinkOptions{}), telemetry.Options{}))
		w := work(t)
		c := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
			for i := range n {
				check(w(ctx, i))
			}
			return nil
		}, core.Options{Name: "api"}))
		return Body{Run: func(n int) { check(c.Do(context.Background(), n)) }, Close: func() { check(c.Close()); check(t.Close()) }}
	}}
}

// observedRun runs operations of a coordinator that is observed or not.
func observedRun(name string, goal float64, observed bool) Side {
	return Side{name, goal, func() Body {
		c := coordinator(nothing, 0)
		if !observed {
			return Body{Run: running(c, 1), Close: closing(c)}
		}
		t := core.Must(telemetry.New(c.Sink(), telemetry.Options{}))
		t.ObserveCoordinator(c)
		return Body{Run: running(c, 1), Close: func() { check(c.Close()); check(t.Close()) }}
	}}
}
