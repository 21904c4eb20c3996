package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

type fixture struct {
	*telemetry.Telemetry
	sink   *signals.Sink
	tracer trace.Tracer
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func setUp(t *testing.T, opts telemetry.Options, tracing ...sdktrace.TracerProviderOption) fixture {
	f := fixture{sink: signals.NewSink(signals.SinkOptions{}), spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
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
	defer f.sink.Subscribe("order.placed", func(s signals.Signal) {
		enqueue(t, caused, signals.CausedBy(context.Background(), s), func(context.Context) error { return nil })
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
	for s := range f.sink.Sense(signals.Query{Pattern: "stage.starting"}) {
		assert.True(t, s.Time.Equal(span.Events[0].Time), "an event has the time of its signal")
	}
}

// noFailure is like durable.Snooze.
type noFailure struct{}

func (noFailure) Error() string { return "later" }
func (noFailure) Failed() bool  { return false }

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
	assert.Empty(t, attributes["ephemeral.outcome"])
	later := coordinator(t, f, "later")
	enqueue(t, later, t.Context(), func(context.Context) error { return noFailure{} })
	require.NoError(t, later.Drain(t.Context()))
	span, attributes = f.span(t, "later")
	assert.Equal(t, codes.Unset, span.Status.Code)
	assert.Empty(t, span.Events)
	assert.Equal(t, "later", attributes["ephemeral.outcome"])
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

// Children of a span that is not sampled are not sampled either.
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
	tel, err := telemetry.New(signals.NewSink(signals.SinkOptions{}), telemetry.Options{}) // uses the global providers, which are not set
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

// part is a part of a program with Stats of type S.
type part[S any] struct{ stats S }

func (p *part[S]) Stats() S { return p.stats }

type lane struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
}

type state int

func (s state) String() string { return []string{"ready", "running"}[s] }

type cacheStats struct {
	Hits    uint64        `json:"hits"`
	Size    int           `json:"size"`
	MaxAge  time.Duration `json:"maxAge"`
	Rate    float64       `json:"rate"`
	Full    bool          `json:"full"`
	Name    string        `json:"name"`
	Secret  int           `json:"-"`
	Loads   core.Stats    `json:"loads"`
	Plain   struct{ BytesRead uint64 }
	Lanes   []lane                    `json:"lanes"`
	Items   map[state]int             `json:"items"`
	Oldest  map[string]time.Duration  `json:"oldest"`
	Waiting map[state]map[string]lane `json:"waiting"`
	hidden  int
}

func TestObserveAnythingWithStats(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c := &part[cacheStats]{}
	stop, err := telemetry.Observe(f.Telemetry, "cache", "users", c)
	require.NoError(t, err)
	// Lanes and states that come later are there as well.
	c.stats = cacheStats{Hits: 7, Size: 3, MaxAge: 1500 * time.Millisecond, Rate: 0.5, Full: true, Secret: 1, hidden: 1, Loads: core.Stats{Failed: 2},
		Plain: struct{ BytesRead uint64 }{9}, Lanes: []lane{{"hot", 4}, {"slow", 5}}, Items: map[state]int{0: 6, 1: 7},
		Oldest: map[string]time.Duration{"hot": time.Minute}, Waiting: map[state]map[string]lane{1: {"hot": {"hot", 8}}}}
	points := f.metrics(t)
	maps.DeleteFunc(points, func(name string, n float64) bool { return strings.HasPrefix(name, "ephemeral.cache.loads.") && n == 0 })
	want := map[string]float64{}
	for field, n := range map[string]float64{
		"hits{users}": 7, "size{users}": 3, "max_age{users}": 1.5, "rate{users}": 0.5, "full{users}": 1, "loads.failed{users}": 2,
		"plain.bytes_read{users}": 9, "lanes.pending{hot,users}": 4, "lanes.pending{slow,users}": 5, "items{users,ready}": 6, "items{users,running}": 7,
		"oldest{hot,users}": 60, "waiting.pending{hot,users,running}": 8,
	} {
		want["ephemeral.cache."+field] = n
	}
	assert.Equal(t, want, points)
	require.NoError(t, stop())
	assert.Empty(t, f.metrics(t))
	_, err = telemetry.Observe(f.Telemetry, "a b", "users", c)
	assert.ErrorContains(t, err, "telemetry: ")
}

// Units, kinds and attributes follow the conventions of OpenTelemetry: {count} for counts, s for
// durations.
func TestUnits(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	_, err := telemetry.Observe(f.Telemetry, "cache", "users", &part[cacheStats]{cacheStats{Lanes: make([]lane, 1), Items: map[state]int{1: 0}, Oldest: map[string]time.Duration{"": 0}, Waiting: map[state]map[string]lane{1: {"": {}}}}})
	require.NoError(t, err)
	var all metricdata.ResourceMetrics
	require.NoError(t, f.reader.Collect(t.Context(), &all))
	got := map[string]string{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		kind, keys := "gauge", ""
		add := func(set attribute.Set) {
			for _, a := range set.ToSlice() {
				keys += " " + string(a.Key)
			}
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]: // so the docs say: counts are integers
			kind = map[bool]string{true: "counter", false: "up-down-counter"}[data.IsMonotonic]
			for _, p := range data.DataPoints {
				add(p.Attributes)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes)
			}
		}
		got[strings.TrimPrefix(m.Name, "ephemeral.cache.")] = kind + " " + m.Unit + keys
	}
	for field, want := range map[string]string{"hits": "counter {count} name", "size": "up-down-counter {count} name", "full": "up-down-counter  name", "max_age": "gauge s name", "rate": "gauge  name",
		"lanes.pending": "up-down-counter {count} lane name", "items": "up-down-counter {count} name state", "oldest": "gauge s key name", "waiting.pending": "up-down-counter {count} lane name state"} {
		assert.Equal(t, want, got[field], field)
	}
}

func TestObserveNeedsAStruct(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	_, err := telemetry.Observe(f.Telemetry, "cache", "users", &part[int]{})
	assert.EqualError(t, err, "telemetry: *telemetry_test.part[int] has no method Stats() that returns a struct, and no Stats(context.Context) that returns a struct and an error")
	_, err = telemetry.Observe[any](f.Telemetry, "cache", "users", nil)
	assert.ErrorContains(t, err, "telemetry: <nil> has no method Stats()")
}

// Limiter is a part with a name. It reads its Stats from a store, like a durable queue.
type Limiter struct{ err error }

func (*Limiter) Name() string { return "api" }

func (l *Limiter) Stats(ctx context.Context) (lane, error) {
	return lane{Pending: 3}, errors.Join(l.err, ctx.Err())
}

func TestObserveAll(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	c, limiter := coordinator(t, f, "orders"), &Limiter{}
	err := f.ObserveAll(c, &part[lane]{}, limiter)
	assert.EqualError(t, err, "telemetry: *telemetry_test.part[github.com/ephemeralgo/ephemeral/patterns/telemetry_test.lane] has no method Name: call Observe with a name")
	points := f.metrics(t)
	assert.Equal(t, 3.0, points["ephemeral.limiter.pending{api}"])
	assert.Contains(t, points, "ephemeral.coordinator.succeeded{orders}")

	limiter.err = errors.New("no connection")
	assert.ErrorContains(t, f.reader.Collect(t.Context(), &metricdata.ResourceMetrics{}), "telemetry: limiter \"api\": no connection")
	limiter.err = nil
	require.NoError(t, c.Drain(t.Context()))
	assert.Equal(t, map[string]float64{"ephemeral.limiter.pending{api}": 3}, f.metrics(t), "a coordinator is observed until its end")
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
	_, err = telemetry.New(signals.NewSink(signals.SinkOptions{}), telemetry.Options{Signals: " , "})
	assert.EqualError(t, err, `telemetry: Signals " , " matches nothing`)
}

// An error that panics in its methods ends the span, with a text that says so.
func TestAnErrorThatPanicsEndsTheSpan(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	var none *fs.PathError
	c := coordinator(t, f, "orders")
	enqueue(t, c, t.Context(), func(context.Context) error { return none })
	require.NoError(t, c.Drain(t.Context()))
	span, _ := f.span(t, "orders")
	assert.Equal(t, codes.Error, span.Status.Code)
	assert.Contains(t, span.Status.Description, "whose method Error panicked")
	require.Len(t, span.Events, 1)
	assert.Equal(t, "exception", span.Events[0].Name)
	assert.Contains(t, span.Events[0].Attributes, attribute.String("exception.type", "*fs.PathError"))
}

// A span of one process is the parent of a span in another one, which has what the work is about.
func TestSpansOverProcesses(t *testing.T) {
	f, other := setUp(t, telemetry.Options{}), setUp(t, telemetry.Options{})
	ctx, request := f.tracer.Start(t.Context(), "request")
	carried := f.Inject(ctx)
	request.End()
	assert.Empty(t, f.Inject(t.Context()))
	c := coordinator(t, other, "orders")
	ctx = other.Extract(context.Background(), carried, map[string]string{"item": "7", "attempt": "2", "metadata.tenant": "acme"})
	require.NoError(t, c.Do(ctx, func(context.Context) error { return nil }))
	span, attributes := other.span(t, "orders")
	assert.Equal(t, request.SpanContext().SpanID(), span.Parent.SpanID())
	assert.Equal(t, request.SpanContext().TraceID(), span.SpanContext.TraceID())
	assert.Equal(t, []string{"7", "2", "acme"}, []string{attributes["ephemeral.item"], attributes["ephemeral.attempt"], attributes["ephemeral.metadata.tenant"]})
}

// A step of a flow has a span below that of the body, with its error.
func TestStartStep(t *testing.T) {
	f := setUp(t, telemetry.Options{})
	ctx, body := f.tracer.Start(t.Context(), "body")
	for name, err := range map[string]error{"charge": nil, "refund": errors.New("no"), "nap": noFailure{}} {
		in, end := f.StartStep(ctx, name, 2)
		assert.True(t, trace.SpanContextFromContext(in).IsValid())
		end(err)
		span, attributes := f.span(t, name)
		assert.Equal(t, body.SpanContext().SpanID(), span.Parent.SpanID())
		assert.Equal(t, "2", attributes["ephemeral.attempt"])
		assert.Equal(t, name == "refund", span.Status.Code == codes.Error)
	}
}
