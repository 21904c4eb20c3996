package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ephemeralgo/ephemeral/core"
)

// maxEnded is how many coordinators of a group that have ended wait for the next collection.
const maxEnded = 100

// ErrClosed is returned by Observe after Close.
var ErrClosed = errors.New("telemetry: Telemetry is closed")

// An Observable is any coordinator: [core.Coordinator], and what embeds a [core.Control].
type Observable interface {
	Name() string
	Stats() core.Stats
	OnClosed(fn func()) (cancel func())
}

// ObserveCoordinator exports the Stats of c, with the kind "coordinator" and the name of c,
// until c has ended: the first collection after that is the last one that includes c. Of
// coordinators that end between two collections, the last 100 are included. Numbers of
// coordinators of the same name are added up. An error of the MeterProvider goes to
// [otel.Handle].
func (t *Telemetry) ObserveCoordinator(c Observable) {
	g, s, err := observe[core.Stats](t, "coordinator", c.Name(), c)
	switch {
	case err == nil:
		cancel := c.OnClosed(func() { g.ended(s) })
		g.onClose(s, cancel)
	case !errors.Is(err, ErrClosed):
		otel.Handle(err)
	}
}

// Observe exports what a method Stats returns, which must be a struct, as
// "ephemeral.KIND.FIELD" with the name as attribute, until stop is called:
//
//	stop, err := telemetry.Observe(tel, "limiter", "api", limiter)
//
// Fields are called as in JSON; slices, maps and texts are left out. Integers of the same
// kind and name are added up; of other numbers, the last one counts. Stats is called while
// metrics are collected. After Close, Observe returns ErrClosed.
func Observe[S any](t *Telemetry, kind, name string, from interface{ Stats() S }) (stop func(), err error) {
	if typ := reflect.TypeFor[S](); typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("telemetry: Stats of %s %q returns %s, not a struct", kind, name, typ)
	}
	g, s, err := observe(t, kind, name, from)
	if err != nil {
		return nil, err
	}
	return func() { g.remove(s) }, nil
}

func observe[S any](t *Telemetry, kind, name string, from interface{ Stats() S }) (*group, *source, error) {
	read := func() slog.Value { return core.StatsValue(from.Stats()) }
	g, err := t.group(groupKey{kind, reflect.TypeFor[S]()}, read())
	if err != nil {
		return nil, nil, err
	}
	s := &source{name: name, read: read}
	g.mu.Lock()
	g.sources = append(g.sources, s)
	g.mu.Unlock()
	return g, s, nil
}

type groupKey struct {
	kind  string
	stats reflect.Type
}

// group returns the group of that key; sample is one of its values.
func (t *Telemetry) group(key groupKey, sample slog.Value) (*group, error) {
	find := func(made *group) (*group, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.closed {
			return nil, ErrClosed
		}
		if made != nil && t.groups[key] == nil {
			t.groups[key] = made
		}
		return t.groups[key], nil
	}
	if g, err := find(nil); g != nil || err != nil {
		return g, err
	}
	made, err := newGroup(t.meter, "ephemeral."+key.kind+".", sample)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	g, err := find(made)
	if g != made {
		made.close()
	}
	return g, err
}

// A group is all sources of one kind.
type group struct {
	instruments map[string]metric.Observable // by field
	registered  metric.Registration

	mu      sync.Mutex
	sources []*source
	closed  bool
}

// A source is read when metrics are collected.
type source struct {
	name  string
	read  func() slog.Value
	ended bool
	stop  func()
}

func newGroup(m metric.Meter, prefix string, sample slog.Value) (*group, error) {
	g := &group{instruments: map[string]metric.Observable{}}
	var errs []error
	for field, v := range fields(map[string]slog.Value{}, "", sample) {
		var o metric.Observable
		var err error
		switch v.Kind() {
		case slog.KindUint64:
			o, err = m.Int64ObservableCounter(prefix + field)
		case slog.KindInt64, slog.KindBool:
			o, err = m.Int64ObservableUpDownCounter(prefix + field)
		case slog.KindDuration:
			o, err = m.Float64ObservableGauge(prefix+field, metric.WithUnit("s"))
		case slog.KindFloat64:
			o, err = m.Float64ObservableGauge(prefix + field)
		default:
			continue
		}
		g.instruments[field] = o
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var err error
	g.registered, err = m.RegisterCallback(g.collect, slices.Collect(maps.Values(g.instruments))...)
	return g, err
}

// collect observes all sources, and forgets those that have ended.
func (g *group) collect(_ context.Context, o metric.Observer) error {
	g.mu.Lock()
	sources := slices.Clone(g.sources)
	g.sources = slices.DeleteFunc(g.sources, func(s *source) bool { return s.ended })
	g.mu.Unlock()
	type point struct{ field, name string }
	points := map[point]float64{}
	for _, s := range sources {
		for field, v := range fields(map[string]slog.Value{}, "", s.read()) {
			at := point{field, s.name}
			if _, gauge := g.instruments[field].(metric.Float64Observable); gauge {
				points[at] = 0
			}
			points[at] += number(v)
		}
	}
	for at, n := range points {
		name := metric.WithAttributes(attribute.String("name", at.name))
		switch instrument := g.instruments[at.field].(type) {
		case metric.Int64Observable:
			o.ObserveInt64(instrument, int64(n), name)
		case metric.Float64Observable:
			o.ObserveFloat64(instrument, n, name)
		}
	}
	return nil
}

// ended keeps the source for one more collection.
func (g *group) ended(s *source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.ended = true
	oldest, n := 0, 0
	for i, s := range slices.Backward(g.sources) {
		if s.ended {
			oldest, n = i, n+1
		}
	}
	if n > maxEnded {
		g.sources = slices.Delete(g.sources, oldest, oldest+1)
	}
}

func (g *group) remove(s *source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources = slices.DeleteFunc(g.sources, func(x *source) bool { return x == s })
}

// onClose calls stop when the group is closed, or now if it is.
func (g *group) onClose(s *source, stop func()) {
	g.mu.Lock()
	closed := g.closed
	s.stop = stop
	g.mu.Unlock()
	if closed {
		stop()
	}
}

func (g *group) close() {
	if err := g.registered.Unregister(); err != nil {
		otel.Handle(err)
	}
	g.mu.Lock()
	sources := g.sources
	g.sources, g.closed = nil, true
	g.mu.Unlock()
	for _, s := range sources {
		if s.stop != nil {
			s.stop()
		}
	}
}

// fields adds the fields of a group to all, with those of the groups in it.
func fields(all map[string]slog.Value, prefix string, group slog.Value) map[string]slog.Value {
	for _, a := range group.Group() {
		if v := a.Value.Resolve(); v.Kind() == slog.KindGroup {
			fields(all, prefix+a.Key+".", v)
		} else {
			all[prefix+a.Key] = v
		}
	}
	return all
}

// number is the value of a field as a number.
func number(v slog.Value) float64 {
	switch v.Kind() {
	case slog.KindUint64:
		return float64(v.Uint64())
	case slog.KindInt64:
		return float64(v.Int64())
	case slog.KindFloat64:
		return v.Float64()
	case slog.KindDuration:
		return v.Duration().Seconds()
	case slog.KindBool:
		if v.Bool() {
			return 1
		}
	}
	return 0
}
