package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap is work with a span around it; see the documentation of the package. If nothing records
// the span, it costs little more than to start it. Work that is not wrapped costs nothing.
// Wrap panics if work is nil.
func Wrap[T any](t *Telemetry, work core.Work[T]) core.Work[T] {
	if work == nil {
		panic("telemetry: Wrap needs a function")
	}
	return func(ctx context.Context, item T) error {
		in, span := t.start(ctx)
		if span == nil {
			return work(in, item)
		}
		r := t.record(ctx, span)
		defer r.end()
		r.err = work(in, item)
		r.returned = true
		return r.err
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](t *Telemetry, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if work == nil {
		panic("telemetry: WrapResult needs a function")
	}
	return func(ctx context.Context, item In) (out Out, err error) {
		in, span := t.start(ctx)
		if span == nil {
			return work(in, item)
		}
		r := t.record(ctx, span)
		defer r.end()
		out, r.err = work(in, item)
		r.returned = true
		return out, r.err
	}
}

// start starts the span of the operation in ctx. It returns the context for the body, and nil
// if the span is not recorded. Such a span need not be ended, and is in the context only if
// it says that the spans below it are not sampled.
func (t *Telemetry) start(ctx context.Context) (context.Context, trace.Span) {
	name := core.OperationFrom(ctx).Source()
	if name == "" {
		name = "operation"
	}
	in, span := t.tracer.Start(ctx, name)
	switch {
	case span.IsRecording():
		return in, span
	case span.SpanContext().IsValid():
		return in, nil
	}
	return ctx, nil
}

// recording is a span that is recorded.
type recording struct {
	ctx      context.Context // of the operation
	op       *core.Operation
	span     trace.Span
	since    time.Time
	err      error
	returned bool // false: the body panicked
}

func (t *Telemetry) record(ctx context.Context, span trace.Span) *recording {
	r := &recording{ctx: ctx, op: core.OperationFrom(ctx), span: span, since: time.Now()}
	if r.op != nil {
		t.spans.Set(r.op.ID(), span.SpanContext())
		span.SetAttributes(append(keyed(r.op.Key()), attribute.Int64("ephemeral.operation", int64(r.op.ID())))...)
	}
	if s, ok := core.CauseFrom(ctx); ok {
		if from, ok := t.spans.Get(s.Operation); ok {
			span.AddLink(trace.Link{SpanContext: from, Attributes: []attribute.KeyValue{attribute.String("ephemeral.signal", s.Name)}})
		}
	}
	return r
}

// end adds what became of the operation and ends the span.
func (r *recording) end() {
	for _, s := range r.op.Signals() {
		if !s.Time.Before(r.since) {
			r.addEvent(s)
		}
	}
	cause := context.Cause(r.ctx)
	status := "succeeded"
	switch {
	case !r.returned:
		status = "failed"
		r.span.SetStatus(codes.Error, "panicked")
	case r.err == nil:
	case cause != nil && !errors.Is(cause, core.ErrTimeout):
		status = "cancelled"
		r.span.RecordError(r.err)
	default:
		status = "failed"
		r.span.RecordError(r.err)
		r.span.SetStatus(codes.Error, r.err.Error())
	}
	r.span.SetAttributes(attribute.String("ephemeral.status", status))
	r.span.End()
}

// addEvent adds a signal, and the exception that it is if it is an error.
func (r *recording) addEvent(s core.Signal) {
	at := trace.WithTimestamp(s.Time)
	r.span.AddEvent(s.Name, at, trace.WithAttributes(keyed(s.Key)...))
	if first(s.Name) == "error" {
		r.span.AddEvent("exception", at, trace.WithAttributes(attribute.String("exception.type", s.Name), attribute.String("exception.message", s.Key)))
	}
}

func keyed(key string) []attribute.KeyValue {
	if key == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("ephemeral.key", key)}
}
