package logging

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Levels beside those of slog, for the names of signals.
const (
	LevelTrace    = slog.LevelDebug - 4
	LevelCritical = slog.LevelError + 4
)

// Log is the family of the signals that a Handler raises:
//
//	log.{level}.{category}.{event}[:{type of error}]
//
// The level is trace, debug, info, warn, error or critical; one in between counts as the next
// lower one. In the other parts letters are in lower case, letters and digits are kept, each run
// of other characters is one "-", none of them at the ends, and what is empty then is "none".
//
// The key of the signal is the text of the event. If there is none, it is the key of the
// operation that raises it.
var Log = core.NewFamily[Record]("log.*")

// A Record is a log record, as the payload of a signal. Treat it as immutable.
type Record struct {
	Time     time.Time // zero if the record had none
	Level    slog.Level
	Message  string
	Category string // attribute "category", else the outermost group of the logger
	Event    string // attribute "event"
	// ErrorType is the type of an attribute that is an error, such as "*fs.PathError": in its
	// chain, the first type that is not of package errors or fmt.
	ErrorType string
	// Attrs are all attributes of the logger and of the record, in the groups of the logger.
	// Values are resolved, see [slog.LogValuer], and passed through ReplaceAttr. They are
	// kept as long as the signal and are not copied, so what a pointer leads to may change.
	Attrs []slog.Attr
	PC    uintptr // where the record was made; 0 if that is not known
}

// Source is the line of code that made the record, or nil.
func (r Record) Source() *slog.Source { return slog.Record{PC: r.PC}.Source() }

// HandlerOptions configure a [Handler]. The zero value is the default.
type HandlerOptions struct {
	// Level is the lowest level of the records that become signals; nil means
	// [slog.LevelInfo].
	Level slog.Leveler
	// ReplaceAttr may change or remove attributes, as in [slog.HandlerOptions], before the
	// record and the name of the signal are made from them: to redact, for example. It is
	// called for the message as well, with the key [slog.MessageKey] and no groups, and not
	// for time, level and source. If it panics, the value is replaced by "!PANIC".
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr
}

// A Handler is a [slog.Handler] that raises a signal of the family [Log] for each record.
//
// It raises it through the operation in the context, and so with its id, on its sink. If there
// is none, or if it has left its window, it raises it on the sink of the Handler. If the context
// has a cause, see [core.CausedBy], that is the cause of the signal.
//
// It never returns an error and writes nothing. Handlers that subscribed to the signal run
// before Handle returns, see [core.Sink.Subscribe]. All methods are safe for concurrent use, and
// there is nothing to close. The zero value is not usable.
type Handler struct {
	sink   *core.Sink
	opts   HandlerOptions
	groups []string
	*scope
	labels
}

// scope has the attributes of a logger in one group.
type scope struct {
	outer *scope // nil: none
	group string
	attrs []slog.Attr
}

var _ slog.Handler = (*Handler)(nil)

// NewHandler makes a Handler. It panics if sink is nil.
func NewHandler(sink *core.Sink, opts HandlerOptions) *Handler {
	if sink == nil {
		panic("logging: NewHandler needs a sink")
	}
	if opts.Level == nil {
		opts.Level = slog.LevelInfo
	}
	return &Handler{sink: sink, opts: opts, scope: new(scope)}
}

// Enabled reports whether records of that level become signals.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.opts.Level.Level()
}

// WithAttrs returns a Handler that adds the attributes to each record.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with, in := *h, *h.scope
	in.attrs = slices.Clip(in.attrs)
	for _, a := range attrs {
		in.attrs = h.add(in.attrs, h.groups, a, &with.labels)
	}
	with.scope = &in
	return &with
}

// WithGroup returns a Handler that adds further attributes in a group of that name.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.groups = append(slices.Clip(h.groups), name)
	with.scope = &scope{outer: h.scope, group: name}
	return &with
}

// Handle raises a signal for the record, unless a bridge has written it. It returns nil.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Value(originKey{}) != nil {
		return nil
	}
	found := h.labels
	attrs := h.attrs
	if n := r.NumAttrs(); n > 0 {
		attrs = append(make([]slog.Attr, 0, len(attrs)+n), attrs...)
		r.Attrs(func(a slog.Attr) bool {
			attrs = h.add(attrs, h.groups, a, &found)
			return !found.bridged
		})
	}
	if found.bridged {
		return nil
	}
	for in := h.scope; in.outer != nil; in = in.outer {
		if len(attrs) > 0 {
			attrs = []slog.Attr{{Key: in.group, Value: slog.GroupValue(attrs...)}}
		}
		attrs = append(slices.Clip(in.outer.attrs), attrs...)
	}
	message := r.Message
	if h.opts.ReplaceAttr != nil {
		message = h.replaced(nil, slog.String(slog.MessageKey, message)).Value.String()
	}
	if found.category == "" && len(h.groups) > 0 {
		found.category = h.groups[0]
	}
	typ, typeName := errorType(found.err)
	h.raise(ctx, found.signalName(r.Level, typeName), Record{
		Time: r.Time, Level: r.Level, Message: message, Category: found.category,
		Event: found.event, ErrorType: typ, Attrs: attrs, PC: r.PC,
	})
	return nil
}

func (h *Handler) raise(ctx context.Context, name string, r Record) {
	cause, caused := core.CauseFrom(ctx)
	raise := func(on core.Raiser) bool {
		if caused {
			on = on.Because(cause)
		}
		return Log.Named(name).Raise(on, r.Event, r)
	}
	if op := core.OperationFrom(ctx); op == nil || !raise(op) {
		raise(h.sink)
	}
}

// add appends an attribute in the form that a Record has, and finds labels in it. Without
// labels, what it has belongs to a group and is none.
func (h *Handler) add(attrs []slog.Attr, groups []string, a slog.Attr, found *labels) []slog.Attr {
	if found != nil {
		found.seeOrigin(a.Value)
	}
	a.Value = a.Value.Resolve()
	if h.opts.ReplaceAttr != nil && a.Value.Kind() != slog.KindGroup {
		a = h.replaced(groups, a)
	}
	switch {
	case a.Key == "" && a.Value.Equal(slog.Value{}):
	case a.Value.Kind() != slog.KindGroup:
		if found != nil {
			found.see(a)
		}
		attrs = append(attrs, a)
	case a.Key == "": // its attributes belong to the group around it
		for _, in := range a.Value.Group() {
			attrs = h.add(attrs, groups, in, found)
		}
	default:
		var all []slog.Attr
		groups = append(slices.Clip(groups), a.Key)
		for _, in := range a.Value.Group() {
			all = h.add(all, groups, in, nil)
		}
		if len(all) > 0 {
			attrs = append(attrs, slog.Attr{Key: a.Key, Value: slog.GroupValue(all...)})
		}
	}
	return attrs
}

// replaced calls ReplaceAttr. A log call must not panic, nor show what should be redacted.
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
