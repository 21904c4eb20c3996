package logging

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// HandlerOptions configure a [Handler]. The zero value is the default.
type HandlerOptions struct {
	// Level is the lowest level of the records that become signals; nil means
	// [slog.LevelInfo].
	Level slog.Leveler
	// ReplaceAttr may change or remove attributes, as in [slog.HandlerOptions]: to redact,
	// for example. The record and the name of the signal are made from its results. It is
	// also called for the message, with the key [slog.MessageKey] and no groups. It is not
	// called for time, level and source. If it panics, the value becomes "!PANIC".
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr
}

// A Handler is a [slog.Handler] that raises a signal of the family [Log] for each record.
//
// If the context has an operation, the operation raises the signal on its own sink. If there
// is no operation, or if it has left its window, the Handler raises the signal on the sink of
// [NewHandler]. If the context has a cause, the signal has it as well: see [signals.CausedBy].
//
// A Handler never returns an error, and writes nothing. Functions that subscribed to the
// signal run before Handle returns, see [signals.Sink.Subscribe]. All methods are safe for
// concurrent use, and there is nothing to close. The zero value is not usable.
type Handler struct {
	sink   *signals.Sink
	opts   HandlerOptions
	groups []string    // open groups, the outermost first
	attrs  []slog.Attr // attributes of the innermost group
	outer  *Handler    // has the attributes around that group; nil without groups
	found  Record      // category, event and type of error so far
}

// NewHandler makes a Handler. It panics if sink is nil.
func NewHandler(sink *signals.Sink, opts HandlerOptions) *Handler {
	if sink == nil {
		panic("logging: NewHandler needs a sink")
	}
	return &Handler{sink: sink, opts: opts.resolved()}
}

func (o HandlerOptions) resolved() HandlerOptions {
	o.Level = cmp.Or[slog.Leveler](o.Level, slog.LevelInfo)
	return o
}

// Enabled reports whether records of this level become signals.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.opts.Level.Level()
}

// WithAttrs returns a Handler that adds the attributes to each record.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		with.attrs = h.add(with.attrs, h.groups, a, &with.found)
	}
	return &with
}

// WithGroup returns a Handler that adds further attributes in a group with this name.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.groups, with.attrs, with.outer = append(slices.Clip(h.groups), name), nil, h
	with.found.Category = cmp.Or(h.found.Category, name)
	return &with
}

// Handle raises a signal for the record, unless a bridge writes the record. It returns nil.
func (h *Handler) Handle(ctx context.Context, from slog.Record) error {
	if ctx.Value(originKey{}) != nil {
		return nil
	}
	r, attrs := h.found, slices.Grow(slices.Clip(h.attrs), from.NumAttrs())
	from.Attrs(func(a slog.Attr) bool {
		attrs = h.add(attrs, h.groups, a, &r)
		return true
	})
	for in := h; in.outer != nil; in = in.outer {
		if len(attrs) > 0 {
			attrs = []slog.Attr{{Key: in.groups[len(in.groups)-1], Value: slog.GroupValue(attrs...)}}
		}
		attrs = append(slices.Clip(in.outer.attrs), attrs...)
	}
	r.Time, r.Level, r.PC, r.Attrs, r.Message = from.Time, from.Level, from.PC, attrs, from.Message
	if h.opts.ReplaceAttr != nil {
		r.Message = h.replaced(nil, slog.String(slog.MessageKey, r.Message)).Value.String()
	}
	kind, op := Log.Named(r.signalName()), core.OperationFrom(ctx)
	if op == nil || !kind.Raise(because(ctx, op), r.Event, r) {
		kind.Raise(because(ctx, h.sink), r.Event, r)
	}
	return nil
}

// because returns a view of on with the cause in the context, if there is one.
func because(ctx context.Context, on signals.Raiser) signals.Raiser {
	if cause, ok := signals.CauseFrom(ctx); ok {
		return on.Because(cause)
	}
	return on
}

// add appends an attribute in the form of [Record.Attrs], and stores its category, event or
// type of error in r.
func (h *Handler) add(attrs []slog.Attr, groups []string, a slog.Attr, r *Record) []slog.Attr {
	if kind := a.Value.Kind(); kind == slog.KindAny || kind == slog.KindLogValuer {
		if err, ok := a.Value.Any().(error); ok {
			if r.ErrorType = ""; guard.Failed(err) {
				r.ErrorType = errorType(err)
			}
		}
	}
	a.Value = a.Value.Resolve()
	if h.opts.ReplaceAttr != nil && a.Value.Kind() != slog.KindGroup {
		a = h.replaced(groups, a)
	}
	if a.Value.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return attrs
		}
		switch a.Key {
		case "category":
			r.Category = a.Value.String()
		case "event":
			r.Event = a.Value.String()
		}
		return append(attrs, a)
	}
	if a.Key != "" { // attributes of a group without a name belong to the group around it
		groups, r = append(slices.Clip(groups), a.Key), new(Record)
	}
	var inner []slog.Attr
	for _, in := range a.Value.Group() {
		inner = h.add(inner, groups, in, r)
	}
	if a.Key != "" && len(inner) > 0 {
		inner = []slog.Attr{{Key: a.Key, Value: slog.GroupValue(inner...)}}
	}
	return append(attrs, inner...)
}

// replaced calls ReplaceAttr. If that panics, the log call must not panic, and must not show
// a text that should be redacted.
func (h *Handler) replaced(groups []string, a slog.Attr) (replaced slog.Attr) {
	defer func() {
		if recover() != nil {
			replaced = slog.String(a.Key, "!PANIC")
		}
	}()
	replaced = h.opts.ReplaceAttr(groups, a)
	replaced.Value = replaced.Value.Resolve()
	return replaced
}
