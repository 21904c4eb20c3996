package guide_test

import (
	"context"
	"io"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// ObserveAll exports the counters of parts of several modules, with their units.
func TestObserveAll(t *testing.T) {
	ctx, sink := t.Context(), signals.NewSink(signals.SinkOptions{})
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tel := core.Must(telemetry.New(sink, telemetry.Options{MeterProvider: provider}))
	defer tel.Close()

	ship := func(ctx context.Context, order string) error { return nil }
	report := func(ctx context.Context, task scheduledtasks.Task) error { return nil }
	load := func(ctx context.Context, id string) (string, error) { return "Ada", nil }
	orders := core.Must(core.NewCoordinator(telemetry.Wrap(tel, ship), core.Options{Name: "orders", Sink: sink}))
	users := core.Must(slidingcache.New(load, slidingcache.Options[string]{Name: "users"}))
	carrier := core.Must(ratelimit.New(core.Rate{PerSecond: 100}, ratelimit.Options{Name: "carrier"}))
	parcels := core.Must(durable.New[string, string](durable.Memory(), nil, ship, durable.Options{Name: "parcels"}))
	reports := core.Must(scheduledtasks.New(nil, scheduledtasks.TargetFunc(report), scheduledtasks.Options{Name: "reports"}))
	for _, part := range []io.Closer{orders, users, carrier, parcels, reports} {
		defer part.Close()
	}
	if err := tel.ObserveAll(orders, users, carrier, parcels, reports); err != nil {
		panic(err)
	}

	core.Must(parcels.Enqueue(ctx, "4711"))
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		panic(err)
	}
	units := map[string]string{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		units[m.Name] = m.Unit
	}
	for name, unit := range map[string]string{
		"coordinator.failed": "{count}", "cache.hits": "{count}", "limiter.denied": "{count}", "queue.ready": "{count}", "queue.oldest": "s", "scheduler.missed": "{count}",
	} {
		got, found := units["ephemeral."+name]
		coretest.Check(t, found && got == unit, "the unit of %s is %q, want %q", name, got, unit)
	}
}
