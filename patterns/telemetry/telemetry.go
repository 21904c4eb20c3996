package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// scope is the name of the tracer and of the meter.
const scope = "github.com/ephemeralgo/ephemeral/patterns/telemetry"

// maxText is the most bytes that a text has for OpenTelemetry. Text is cut to it, and invalid UTF-8 is replaced: an exporter loses all
// that it would send together with invalid text.
const maxText = 1000

func text(s string) string {
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// attr is an attribute with a text of the program.
func attr(key, value string) attribute.KeyValue { return attribute.String(key, text(value)) }

// Options configure a Telemetry. The zero value is the default.
type Options struct {
	// MeterProvider and TracerProvider make the instruments and the spans. nil means the
	// global providers of package otel. The program may set these later.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Propagator carries spans over processes; nil means that of W3C, propagation.TraceContext. See [Telemetry.Inject].
	Propagator propagation.TextMapPropagator
	// Signals is the pattern of the signals to count; see [signals.Match]. Each part of its
	// comma list is a family. "" means all signals whose first segment is "error" or "perf".
	//
	//ephemeral:pattern
	Signals string
	// MaxNames is how many names of a family have their own count. Further names are
	// counted as "other". 0 means 100, negative no limit.
	MaxNames int
}

// resolved returns the options with their defaults, or an error if they are not valid.
func (o Options) resolved() (Options, error) {
	o.MeterProvider = cmp.Or(o.MeterProvider, otel.GetMeterProvider())
	o.TracerProvider = cmp.Or(o.TracerProvider, otel.GetTracerProvider())
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	o.Signals = cmp.Or(o.Signals, "error, error.*, error:*, perf, perf.*, perf:*")
	o.MaxNames = cmp.Or(o.MaxNames, 100)
	if strings.Trim(o.Signals, ", ") == "" {
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
	opts        Options
	families    []string // of opts.Signals
	unsubscribe func()

	mu       sync.Mutex
	names    map[[3]string]metric.AddOption // the key is family, class and name
	number   map[string]int                 // number of names of each family
	observed map[*metric.Registration]bool
}

// New makes a Telemetry that counts the signals of sink from now on. It returns an error if
// the options are not valid.
func New(sink *signals.Sink, opts Options) (*Telemetry, error) {
	opts, err := opts.resolved()
	if err != nil || sink == nil {
		return nil, cmp.Or(err, errors.New("telemetry: New needs a sink"))
	}
	t := &Telemetry{
		tracer:   opts.TracerProvider.Tracer(scope),
		meter:    opts.MeterProvider.Meter(scope),
		spans:    core.Must(lru.New(lru.Options[core.OperationID, trace.SpanContext]{HotAfter: -1})),
		families: strings.Split(opts.Signals, ","),
		opts:     opts,
		names:    map[[3]string]metric.AddOption{},
		number:   map[string]int{},
		observed: map[*metric.Registration]bool{},
	}
	counter, err := t.meter.Int64Counter("ephemeral.signals")
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t.unsubscribe = sink.Subscribe(opts.Signals, func(s signals.Signal) {
		counter.Add(context.Background(), 1, t.attributes(s.Name))
	})
	return t, nil
}

// Close ends the counting of signals and all observations. Flush the MeterProvider before, so
// that it collects the metrics once more. Work that was wrapped still makes spans after Close.
// Close may be called many times. It returns errors of the MeterProvider.
func (t *Telemetry) Close() error {
	t.unsubscribe()
	t.mu.Lock()
	observed := t.observed
	t.observed = map[*metric.Registration]bool{}
	t.mu.Unlock()
	var err error
	for registration := range observed {
		err = errors.Join(err, (*registration).Unregister())
	}
	return err
}

// Inject returns the span in ctx as text, for [Telemetry.Extract] in another process. With both, a Telemetry is the Carrier of a
// queue of package durable: the span in the context of Enqueue is the parent of the spans of all attempts.
func (t *Telemetry) Inject(ctx context.Context) map[string]string {
	carried := propagation.MapCarrier{}
	t.opts.Propagator.Inject(ctx, carried)
	return carried
}

// Extract returns ctx with the span that Inject has returned as text. Spans of [Wrap] have what about says as attributes, with the
// prefix "ephemeral.": for a durable queue, its item and the number of the attempt, and the metadata of the item.
func (t *Telemetry) Extract(ctx context.Context, carried, about map[string]string) context.Context {
	var attributes []attribute.KeyValue
	for name, value := range about {
		attributes = append(attributes, attr(text("ephemeral."+name), value))
	}
	return context.WithValue(t.opts.Propagator.Extract(ctx, propagation.MapCarrier(carried)), aboutKey{}, attributes)
}

type aboutKey struct{} // of the attributes that Extract was given

// Wrap returns work with a span around it; see the documentation of the package. If nothing
// records the span, a call costs little more than Tracer.Start. Wrap panics if work is nil.
func Wrap[T any](t *Telemetry, work core.Work[T]) core.Work[T] {
	if work == nil {
		panic("telemetry: Wrap needs a function")
	}
	wrapped := WrapResult(t, func(ctx context.Context, item T) (struct{}, error) { return struct{}{}, work(ctx, item) })
	return func(ctx context.Context, item T) error {
		_, err := wrapped(ctx, item)
		return err
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](t *Telemetry, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if work == nil {
		panic("telemetry: WrapResult needs a function")
	}
	return func(ctx context.Context, item In) (out Out, err error) {
		op := core.OperationFrom(ctx)
		in, span := t.tracer.Start(ctx, text(op.Source()))
		if !span.IsRecording() {
			if span.SpanContext().IsValid() {
				ctx = in // so that child spans are not sampled either
			}
			return work(ctx, item)
		}
		t.spans.Set(op.ID(), span.SpanContext())
		span.SetAttributes(attribute.Int64("ephemeral.operation", int64(op.ID())), attr("ephemeral.key", op.Key()))
		if about, ok := ctx.Value(aboutKey{}).([]attribute.KeyValue); ok {
			span.SetAttributes(about...)
		}
		if cause, ok := signals.CauseFrom(ctx); ok {
			if from, ok := t.spans.Get(cause.Operation); ok && cause.Operation != 0 {
				span.AddLink(trace.Link{SpanContext: from, Attributes: []attribute.KeyValue{attr("ephemeral.signal", cause.Name)}})
			}
		}
		returned := false
		defer func() { finish(ctx, span, op, err, returned) }()
		out, err = work(in, item)
		returned = true
		return out, err
	}
}

// finish adds the signals and the error of the operation, and ends the span.
func finish(ctx context.Context, span trace.Span, op *core.Operation, err error, returned bool) {
	defer span.End()
	for _, s := range op.Signals() {
		at, key := trace.WithTimestamp(s.Time), attr("ephemeral.key", s.Key)
		span.AddEvent(text(s.Name), at, trace.WithAttributes(key))
		if class(s.Name) == "exception" {
			span.AddEvent("exception", at, trace.WithAttributes(attr("exception.type", s.Name), key))
		}
	}
	cause := context.Cause(ctx)
	cancelled := cause != nil && !guard.Is(cause, core.ErrTimeout)
	span.SetAttributes(attribute.Bool("ephemeral.cancelled", cancelled))
	if !returned {
		span.SetStatus(codes.Error, "panicked")
	}
	switch message := text(guard.Text(err)); {
	case err == nil:
	case !guard.Failed(err):
		span.SetAttributes(attribute.String("ephemeral.outcome", message))
	default:
		if !cancelled {
			span.SetStatus(codes.Error, message)
		}
		exception(span, err, message)
	}
}

func exception(span trace.Span, err error, message string) {
	span.AddEvent("exception", trace.WithAttributes(attr("exception.type", fmt.Sprintf("%T", err)), attribute.String("exception.message", message)))
}

// StartStep starts a span for a step of a flow (atoms/durable/flow), with its name and the number of the attempt. End ends it, with the error of the step. A durable queue
// whose Carrier is the Telemetry calls it for each step that runs.
func (t *Telemetry) StartStep(ctx context.Context, name string, attempt int) (with context.Context, end func(err error)) {
	with, span := t.tracer.Start(ctx, text(name), trace.WithAttributes(attribute.Int("ephemeral.attempt", attempt)))
	return with, func(err error) {
		if message := text(guard.Text(err)); err != nil && guard.Failed(err) {
			span.SetStatus(codes.Error, message)
			exception(span, err, message)
		}
		span.End()
	}
}

// attributes returns the attributes of the counter for a signal of this name.
func (t *Telemetry) attributes(name string) metric.AddOption {
	family := slices.IndexFunc(t.families, func(pattern string) bool { return signals.Match(pattern, name) })
	signal, _, _ := strings.Cut(name, ":")
	at := [3]string{t.families[family], class(name), text(signal)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[at] == nil && t.opts.MaxNames >= 0 && t.number[at[0]] >= t.opts.MaxNames {
		at[2] = "other"
	}
	if t.names[at] == nil {
		t.number[at[0]]++
		family := attr("family", strings.TrimSpace(at[0]))
		t.names[at] = metric.WithAttributes(family, attribute.String("class", at[1]), attribute.String("signal", at[2]))
	}
	return t.names[at]
}

// class is the attribute "class" of a signal, by the first segment of its name.
func class(name string) string {
	first, _, _ := strings.Cut(name, ":")
	switch first, _, _ = strings.Cut(first, "."); first {
	case "error":
		return "exception"
	case "perf":
		return "metric"
	}
	return "event"
}
