package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ephemeralgo/ephemeral/core"
)

// ObserveCoordinator is [Observe] for a coordinator, or for a type that embeds a
// [core.Control]. The kind is "coordinator", and the name that of the coordinator. It ends
// with the coordinator: see [core.Control.OnClosed]. To export the last counts, call Flush of
// the coordinator, then flush the MeterProvider, and then call Drain or Close. An error goes
// to [otel.Handle].
func (t *Telemetry) ObserveCoordinator(c interface {
	Name() string
	Stats() core.Stats
	OnClosed(fn func()) (cancel func())
}) {
	stop, err := Observe[core.Stats](t, "coordinator", c.Name(), c)
	if err != nil {
		otel.Handle(err)
		return
	}
	c.OnClosed(func() { stop() }) // nothing depends on an error here
}

// Observe exports the numbers that the method Stats returns, until stop or [Telemetry.Close]
// is called. Stats must return a struct:
//
//	stop, err := telemetry.Observe(tel, "limiter", "api", limiter)
//
// A number becomes "ephemeral.KIND.FIELD", here "ephemeral.limiter.allowed" and so on, with
// the attribute name=NAME. Fields have their names in JSON. Slices, maps and texts are left
// out. Observe calls Stats once, and then whenever metrics are collected. Values of one
// kind need different names. Stop returns an error of the MeterProvider.
func Observe[S any](t *Telemetry, kind, name string, from interface{ Stats() S }) (stop func() error, err error) {
	instruments, all := map[string]metric.Float64Observable{}, []metric.Observable{}
	eachNumber("ephemeral."+kind, core.StatsValue(from.Stats()), func(field string, kind slog.Kind, _ float64) {
		var failed error
		switch kind {
		case slog.KindUint64:
			instruments[field], failed = t.meter.Float64ObservableCounter(field)
		case slog.KindInt64, slog.KindBool:
			instruments[field], failed = t.meter.Float64ObservableUpDownCounter(field)
		default:
			instruments[field], failed = t.meter.Float64ObservableGauge(field)
		}
		all, err = append(all, instruments[field]), errors.Join(err, failed)
	})
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	attributes := metric.WithAttributes(attribute.String("name", name))
	registration, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		eachNumber("ephemeral."+kind, core.StatsValue(from.Stats()), func(field string, _ slog.Kind, n float64) {
			o.ObserveFloat64(instruments[field], n, attributes)
		})
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observed[&registration] = true
	return func() error {
		t.mu.Lock()
		delete(t.observed, &registration)
		t.mu.Unlock()
		return registration.Unregister()
	}, nil
}

// eachNumber calls visit for each number in a group, and in the groups inside it.
func eachNumber(prefix string, group slog.Value, visit func(field string, kind slog.Kind, n float64)) {
	for _, a := range group.Group() {
		field, v, n := prefix+"."+a.Key, a.Value.Resolve(), 0.0
		switch x := v.Any().(type) {
		case []slog.Attr:
			eachNumber(field, v, visit)
			continue
		case uint64:
			n = float64(x)
		case int64:
			n = float64(x)
		case float64:
			n = x
		case time.Duration:
			n = x.Seconds()
		case bool:
			n = map[bool]float64{true: 1}[x]
		default:
			continue
		}
		visit(field, v.Kind(), n)
	}
}
