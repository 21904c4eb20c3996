package telemetry

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// Scope is the name of the tracer and of the meter.
const Scope = "github.com/ephemeralgo/ephemeral/patterns/telemetry"

// Options configure a Telemetry. The zero value is the default.
type Options struct {
	// MeterProvider and TracerProvider make the instruments and the spans; nil means the global
	// ones, which may be set later.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Signals is a pattern, each alternative of which is a family of signals to count; see
	// [core.Match]. "" means all signals whose first segment is "error" or "perf".
	Signals string
	// MaxNames is how many names of a family are counted apart, first come, first served; 0
	// means 100, negative no limit.
	MaxNames int
}

// resolved returns the options with their defaults, and what is wrong with them.
func (o Options) resolved() (Options, error) {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Signals == "" {
		o.Signals = "error, error.*, error:*, perf, perf.*, perf:*"
	}
	if o.MaxNames == 0 {
		o.MaxNames = 100
	}
	if len(families(o.Signals)) == 0 {
		return o, fmt.Errorf("telemetry: Signals %q matches nothing", o.Signals)
	}
	return o, nil
}

// A Telemetry exports what happens on a sink and in coordinators. Make one with [New] and
// close it. All methods are safe for concurrent use, from bodies and from handlers as well.
type Telemetry struct {
	tracer      trace.Tracer
	meter       metric.Meter
	spans       *lru.LRU[core.OperationID, trace.SpanContext] // for links
	unsubscribe func()

	mu     sync.Mutex
	closed bool
	groups map[groupKey]*group
}

// New counts the signals of sink from now on, and says what is wrong with the options.
func New(sink *core.Sink, opts Options) (*Telemetry, error) {
	if sink == nil {
		return nil, errors.New("telemetry: New needs a sink")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	t := &Telemetry{
		tracer: opts.TracerProvider.Tracer(Scope),
		meter:  opts.MeterProvider.Meter(Scope),
		groups: map[groupKey]*group{},
	}
	t.spans = core.Must(lru.New(lru.Options[core.OperationID, trace.SpanContext]{HotAfter: -1}))
	count, err := newCounters(t.meter, opts)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t.unsubscribe = sink.Subscribe(opts.Signals, count.add)
	return t, nil
}

// Close ends the counting and all observations. Call it after the last collection of
// metrics: what Stats says is not exported any more. Spans that are under way end with their
// operations; work that was wrapped makes further ones as long as it is used. Close may be
// called many times. It returns nil.
func (t *Telemetry) Close() error {
	t.unsubscribe()
	t.mu.Lock()
	t.closed = true
	groups := t.groups
	t.groups = nil
	t.mu.Unlock()
	for _, g := range groups {
		g.close()
	}
	return nil
}
