package bench

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// A name, key or error text that is not valid UTF-8, or too long, does not stop an OTLP exporter.
// The test is here, because telemetry does not require an exporter.
func TestTextsForAnOTLPExporter(t *testing.T) {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	sink, bad := signals.NewSink(signals.SinkOptions{}), "order.\xff"+strings.Repeat("é", 100_000)
	tel, err := telemetry.New(sink, telemetry.Options{Signals: "*", MaxNames: -1,
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	require.NoError(t, err)
	defer tel.Close()
	work := func(ctx context.Context, bad string) error {
		core.OperationFrom(ctx).RaiseKey("error."+bad, bad)
		return errors.New(bad)
	}
	c, err := core.NewKeyedCoordinator(func(bad string) string { return bad }, telemetry.Wrap(tel, work), core.Options{Name: bad, Sink: sink})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, tel.ObserveAll(c))
	require.Error(t, c.Do(ctx, bad))

	traces, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server.URL))
	require.NoError(t, err)
	require.Len(t, spans.GetSpans(), 1)
	require.NoError(t, traces.ExportSpans(ctx, spans.GetSpans().Snapshots()))
	metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(server.URL))
	require.NoError(t, err)
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(ctx, &all))
	require.NoError(t, metrics.Export(ctx, &all))
	for _, s := range spans.GetSpans() {
		for _, text := range []string{s.Name, s.Status.Description, s.Events[0].Name, s.Attributes[1].Value.String()} {
			require.LessOrEqual(t, len(text), 1003)
		}
	}
}
