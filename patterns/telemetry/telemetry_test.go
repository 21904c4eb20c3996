package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

type fixture struct {
	*telemetry.Telemetry
	sink   *core.Sink
	tracer trace.Tracer
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func setUp(t *testing.T, opts telemetry.Options, tracing ...sdktrace.TracerProviderOption) fixture {
	f := fixture{sink: core.NewSink(core.SinkOptions{}), spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(append(tracing, sdktrace.WithSyncer(f.spans))...)
	opts.TracerProvider, opts.MeterProvider = tp, sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	f.tracer = tp.Tracer("test")
	tel, err := telemetry.New(f.sink, opts)
	require.NoError(t, err)
	t.Cleanup(func() { tel.Close() })
	f.Telemetry = tel
	return f
}

type body = func(context.Context) error

func coordinator(t *testing.T, f fixture, name string) *core.Coordinator[body] {
	work := func(ctx context.Context, b body) error { return b(ctx) }
	c, err := core.NewCoordinator(telemetry.Wrap(f.Telemetry, work), core.Options{Name: name, Sink: f.sink})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func enqueue(t *testing.T, c *core.Coordinator[body], ctx context.Context, b body) core.OperationID {
	id, err := c.Enqueue(ctx, b)
	require.NoError(t, err)
	return id
}

// span returns the only span of that name, with its attributes.
func (f fixture) span(t *testing.T, name string) (tracetest.SpanStub, map[string]string) {
	var found []tracetest.SpanStub
	for _, s := range f.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, name)
	attributes := map[string]string{}
	for _, a := range found[0].Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	return found[0], attributes
}

// metrics collects and returns all points as "name{attribute,...}".
func (f fixture) metrics(t *testing.T) map[string]float64 {
	var all metricdata.ResourceMetrics
	require.NoError(t, f.reader.Collect(t.Context(), &all))
	points := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					points[m.Name+values(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					points[m.Name+values(p.Attributes)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					points[m.Name+values(p.Attributes)] = p.Value
				}
			}
		}
	}
	return points
}

// values are the values of attributes, sorted by key.
func values(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, a.Value.String())
	}
	return "{" + strings.Join(all, ",") + "}"
}

func TestSpanIsChildOfEnqueuerAndLinkedToCause(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	outer, inner, caused := coordinator(t, f, "outer"), coordinator(t, f, "inner"), coordinator(t, f, "caused")
	defer f.sink.Subscribe("order.placed", func(s core.Signal) {
		enqueue(t, caused, core.CausedBy(context.Background(), s), func(context.Context) error { return nil })
	})()
	ctx, request := f.tracer.Start(t.Context(), "request")
	enqueue(t, outer, ctx, func(ctx context.Context) error {
		core.OperationFrom(ctx).Raise("order.placed")
		return inner.Do(ctx, func(context.Context) error { return nil })
	})
	request.End()
	require.NoError(t, core.InOrder(outer, inner, caused).Drain(t.Context()))

	first, _ := f.span(t, "outer")
	assert.Equal(t, request.SpanContext().SpanID(), first.Parent.SpanID())
	second, _ := f.span(t, "inner")
	assert.Equal(t, first.SpanContext.SpanID(), second.Parent.SpanID())
	third, _ := f.span(t, "caused")
	assert.False(t, third.Parent.IsValid())
	require.Len(t, third.Links, 1)
	assert.Equal(t, first.SpanContext.SpanID(), third.Links[0].SpanContext.SpanID())
}

func TestSignalsAreEventsOfTheSpan(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c := coordinator(t, f, "api")
	enqueue(t, c, t.Context(), func(ctx context.Context) error {
		op := core.OperationFrom(ctx)
		op.Raise("stage.starting")
		op.RaiseKey("error:503", "example.com")
		op.Raise("errorless")
		f.sink.Raise("of.others")
		return nil
	})
	require.NoError(t, c.Flush(t.Context()))
	span, _ := f.span(t, "api")
	var names []string
	for _, e := range span.Events {
		names = append(names, e.Name)
	}
	assert.Equal(t, []string{"stage.starting", "error:503", "exception", "errorless"}, names)
	for s := range f.sink.Sense(core.Query{Pattern: "stage.starting"}) {
		assert.True(t, s.Time.Equal(span.Events[0].Time), "an event has the time of its signal")
	}
}

func TestErrorsAreRecorded(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	failing, panicking, cancelled := coordinator(t, f, "failing"), coordinator(t, f, "panicking"), coordinator(t, f, "cancelled")
	enqueue(t, failing, t.Context(), func(context.Context) error { return errors.New("no route") })
	enqueue(t, panicking, t.Context(), func(context.Context) error { panic("lost") })
	enqueue(t, cancelled, t.Context(), func(ctx context.Context) error {
		cancelled.Cancel(core.OperationFrom(ctx).ID(), nil)
		return ctx.Err()
	})
	require.NoError(t, core.InOrder(failing, panicking, cancelled).Drain(t.Context()))
	span, attributes := f.span(t, "failing")
	assert.Equal(t, sdktrace.Status{Code: codes.Error, Description: "no route"}, span.Status)
	assert.Equal(t, "exception", span.Events[0].Name)
	assert.Equal(t, "false", attributes["ephemeral.cancelled"])
	span, _ = f.span(t, "panicking")
	assert.Equal(t, codes.Error, span.Status.Code)
	span, attributes = f.span(t, "cancelled")
	assert.Equal(t, codes.Unset, span.Status.Code)
	assert.Equal(t, "true", attributes["ephemeral.cancelled"])
}

func TestWrapResult(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c, err := core.NewResultCoordinator(telemetry.WrapResult(f.Telemetry, func(_ context.Context, n int) (int, error) {
		return 2 * n, nil
	}), core.Options{Name: "double"})
	require.NoError(t, err)
	defer c.Close()
	n, err := c.Do(t.Context(), 21)
	assert.NoError(t, err)
	assert.Equal(t, 42, n)
	f.span(t, "double")
}

// What a span that is not sampled starts is not sampled either.
func TestNotSampled(t *testing.T) {
	f := setUp(t, telemetry.Options{}, sdktrace.WithSampler(sdktrace.ParentBased(notSampled{})))
	outer, inner := coordinator(t, f, "outer"), coordinator(t, f, "inner")
	require.NoError(t, outer.Do(t.Context(), func(ctx context.Context) error {
		assert.True(t, trace.SpanContextFromContext(ctx).IsValid())
		return inner.Do(ctx, func(context.Context) error { return nil })
	}))
	assert.Empty(t, f.spans.GetSpans())
}

// notSampled samples all roots but those called outer.
type notSampled struct{}

func (notSampled) Description() string { return "" }
func (notSampled) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == "outer" {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

func TestNobodyExportsCostsTracerStart(t *testing.T) {
	tel, err := telemetry.New(core.NewSink(core.SinkOptions{}), telemetry.Options{}) // the global providers, which are not set
	require.NoError(t, err)
	defer tel.Close()
	ctx := t.Context()
	wrapped := telemetry.Wrap(tel, func(in context.Context, _ int) error {
		assert.True(t, in == ctx)
		return nil
	})
	tracer := otel.Tracer("test")
	started := testing.AllocsPerRun(100, func() { tracer.Start(ctx, "api") })
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { wrapped(ctx, 1) }), started)
}

func TestCountersOfFamilies(t *testing.T) {
	f := setUp(t, telemetry.Options{Signals: "error*, perf*, circuit.*", MaxNames: 3})
	for _, name := range []string{"error", "error.db", "error:503", "errorless", "error.net", "perf.query:12ms", "performance", "circuit.open", "of.others"} {
		f.sink.Raise(name)
	}
	want := map[string]float64{}
	for labels, n := range map[string]float64{
		"exception,error*,error": 2, "exception,error*,error.db": 1, "event,error*,errorless": 1, "exception,error*,other": 1,
		"metric,perf*,perf.query": 1, "event,perf*,performance": 1, "event,circuit.*,circuit.open": 1,
	} {
		want["ephemeral.signals{"+labels+"}"] = n
	}
	assert.Equal(t, want, f.metrics(t))
}

func TestDefaultSignalsAreErrorAndPerf(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	for i := range 150 {
		f.sink.Raise(fmt.Sprintf("error.e%d", i))
	}
	for _, name := range []string{"errorless", "error", "perf:1", "circuit.open"} {
		f.sink.Raise(name)
	}
	points := f.metrics(t)
	assert.Equal(t, 50.0, points["ephemeral.signals{exception,error.*,other}"])
	assert.Len(t, points, 101+2)
}

func TestObserveCoordinatorUntilItHasEnded(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	a, b := coordinator(t, f, "a"), coordinator(t, f, "b")
	f.ObserveCoordinator(a)
	f.ObserveCoordinator(b)
	const succeeded = "ephemeral.coordinator.succeeded"
	require.NoError(t, a.Do(t.Context(), func(context.Context) error { return nil }))
	points := f.metrics(t)
	assert.Equal(t, []float64{1, 0}, []float64{points[succeeded+"{a}"], points[succeeded+"{b}"]})
	require.NoError(t, a.Drain(t.Context()))
	points = f.metrics(t)
	assert.NotContains(t, points, succeeded+"{a}")
	assert.Contains(t, points, succeeded+"{b}")
}

type cache struct{ stats cacheStats }

type cacheStats struct {
	Hits   uint64        `json:"hits"`
	Size   int           `json:"size"`
	MaxAge time.Duration `json:"maxAge"`
	Rate   float64       `json:"rate"`
	Full   bool          `json:"full"`
	Name   string        `json:"name"`
	Loads  core.Stats    `json:"loads"`
}

func (c *cache) Stats() cacheStats { return c.stats }

func TestObserveAnythingWithStats(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c := &cache{cacheStats{Hits: 7, Size: 3, MaxAge: 1500 * time.Millisecond, Rate: 0.5, Full: true, Loads: core.Stats{Failed: 2}}}
	stop, err := telemetry.Observe(f.Telemetry, "cache", "users", c)
	require.NoError(t, err)
	points := f.metrics(t)
	for field, want := range map[string]float64{"hits": 7, "size": 3, "maxAge": 1.5, "rate": 0.5, "full": 1, "loads.failed": 2} {
		assert.Equal(t, want, points["ephemeral.cache."+field+"{users}"], field)
	}
	assert.NotContains(t, points, "ephemeral.cache.name{users}")
	require.NoError(t, stop())
	assert.Empty(t, f.metrics(t))
	_, err = telemetry.Observe(f.Telemetry, "a b", "users", c)
	assert.ErrorContains(t, err, "telemetry: ")
}

func TestCloseLeavesNothing(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c := coordinator(t, f, "api")
	coretest.NothingLeft(t, f.sink, func() {
		tel, err := telemetry.New(f.sink, telemetry.Options{})
		require.NoError(t, err)
		tel.ObserveCoordinator(c)
		tel.Close()
	})
	f.ObserveCoordinator(c)
	assert.NotEmpty(t, f.metrics(t))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	f.sink.Raise("error")
	assert.Empty(t, f.metrics(t))
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := telemetry.New(nil, telemetry.Options{})
	assert.EqualError(t, err, "telemetry: New needs a sink")
	_, err = telemetry.New(core.NewSink(core.SinkOptions{}), telemetry.Options{Signals: " , "})
	assert.EqualError(t, err, `telemetry: Signals " , " matches nothing`)
}
