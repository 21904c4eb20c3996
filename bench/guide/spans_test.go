package guide_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/telemetry"
)

// A span of each attempt, in whatever process, is a child of that of Enqueue, and says what is attempted. A
// Snooze is an outcome and no error.
func TestSpansOfDurableItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
		tel := core.Must(telemetry.New(signals.NewSink(signals.SinkOptions{}), telemetry.Options{TracerProvider: provider}))
		defer tel.Close()
		body := telemetry.Wrap(tel, func(ctx context.Context, _ string) error {
			if len(spans.Ended()) == 1 { // that of Enqueue
				return durable.Snooze(time.Minute, "closed")
			}
			return nil
		})
		store := durable.Memory()
		queue := func(node string) *durable.Queue[string] {
			return core.Must(durable.New[string, string](store, nil, body, durable.Options{Name: "orders", Node: node, Carrier: tel}))
		}
		producer, worker := queue("producer"), queue("worker")
		defer producer.Close()
		defer worker.Close()
		go worker.Run(t.Context())

		ctx, request := provider.Tracer("test").Start(t.Context(), "request")
		id := core.Must(producer.With(durable.ItemOptions{Metadata: map[string]string{"tenant": "acme"}}).Enqueue(ctx, "order-1"))
		request.End()
		if err := producer.WaitAll(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		ended := spans.Ended()[1:]
		if len(ended) != 2 {
			t.Fatalf("got %d spans of attempts, want 2", len(ended))
		}
		for n, outcome := range []string{"durable: run again in 1m0s: closed", ""} {
			span := ended[n]
			if got, want := span.Parent().SpanID(), request.SpanContext().SpanID(); got != want {
				t.Errorf("attempt %d: the parent is %v, want %v", n+1, got, want)
			}
			if got := span.Status().Code; got != codes.Unset {
				t.Errorf("attempt %d: the status is %v, want none", n+1, got)
			}
			for name, want := range map[string]string{"item": "1", "attempt": "1", "metadata.tenant": "acme", "outcome": outcome} {
				i := slices.IndexFunc(span.Attributes(), func(a attribute.KeyValue) bool { return string(a.Key) == "ephemeral."+name })
				got := ""
				if i >= 0 {
					got = span.Attributes()[i].Value.AsString()
				}
				if got != want {
					t.Errorf("attempt %d: ephemeral.%s is %q, want %q", n+1, name, got, want)
				}
			}
		}
	})
}
