package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// ObserveCoordinator is [Telemetry.ObserveAll] for a coordinator, or for a type that embeds a
// [core.Control]. To export the last counts, call Flush of the coordinator, then flush the
// MeterProvider, and then call Drain or Close. An error goes to [otel.Handle].
func (t *Telemetry) ObserveCoordinator(c interface {
	Name() string
	Stats() core.Stats
	OnClosed(fn func()) (cancel func())
}) {
	if err := t.ObserveAll(c); err != nil {
		otel.Handle(err)
	}
}

// ObserveAll is [Observe] for any number of parts with the methods Name and Stats: coordinators,
// caches, limiters, durable queues, schedulers and others:
//
//	err := tel.ObserveAll(orders, cache, limiter, queue, scheduler)
//
// The kind of a part is the name of its type, such as "limiter". If Stats returns a [core.Stats],
// it is "coordinator". A part with a method OnClosed, such as a coordinator, is observed until it
// has ended: see [core.Control.OnClosed]. The error names the parts that are not observed; all
// others are observed.
func (t *Telemetry) ObserveAll(parts ...any) (err error) {
	for _, part := range parts {
		named, ok := part.(interface{ Name() string })
		if !ok {
			err = errors.Join(err, fmt.Errorf("telemetry: %T has no method Name: call Observe with a name", part))
			continue
		}
		kind, _, _ := strings.Cut(fmt.Sprintf("%T", part), "[") // without type parameters
		kind = snake(kind[strings.LastIndexByte(kind, '.')+1:])
		if _, ok := part.(interface{ Stats() core.Stats }); ok {
			kind = "coordinator"
		}
		stop, failed := t.observe(kind, named.Name(), part)
		err = errors.Join(err, failed)
		if p, ok := part.(interface{ OnClosed(func()) func() }); ok && failed == nil {
			p.OnClosed(func() { stop() }) // an error does not matter here
		}
	}
	return err
}

// Observe exports the numbers that the method Stats returns, until stop or [Telemetry.Close]
// is called:
//
//	stop, err := telemetry.Observe(tel, "limiter", "api", limiter)
//
// A number becomes "ephemeral.KIND.FIELD", here "ephemeral.limiter.allowed" and so on, with
// the attribute name=NAME. See "Metrics" in the documentation of the package. Stats must return
// a struct. It is called whenever metrics are collected. Values of one kind need different names.
// Stop returns an error of the MeterProvider.
func Observe[S any](t *Telemetry, kind, name string, from interface{ Stats() S }) (stop func() error, err error) {
	return t.observe(kind, name, from)
}

func (t *Telemetry) observe(kind, name string, part any) (stop func() error, err error) {
	sample, read := reader(part)
	if read == nil {
		return nil, fmt.Errorf("telemetry: %T has no method Stats() that returns a struct, and no Stats(context.Context) that returns a struct and an error", part)
	}
	prefix, base := "ephemeral."+kind, []attribute.KeyValue{attr("name", name)}
	instruments, all := map[string]metric.Observable{}, []metric.Observable{}
	(&walk{sample: true, visit: func(field string, v reflect.Value, _ []attribute.KeyValue) {
		made, failed := t.instrument(field, v)
		instruments[field], all, err = made, append(all, made), errors.Join(err, failed)
	}}).value(prefix, sample, nil)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	registration, err := t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		var stats reflect.Value
		var err error
		if panicked := guard.Do("Stats", func() { stats, err = read(ctx) }); panicked != nil {
			err = panicked
		}
		if err != nil {
			return fmt.Errorf("telemetry: %s %q: %w", kind, name, err)
		}
		(&walk{visit: func(field string, v reflect.Value, attributes []attribute.KeyValue) {
			with := metric.WithAttributes(attributes...)
			switch of := instruments[field].(type) {
			case metric.Int64Observable:
				o.ObserveInt64(of, count(v), with)
			case metric.Float64Observable:
				o.ObserveFloat64(of, measure(v), with)
			}
		}}).value(prefix, stats, base)
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observed[&registration] = true
	return func() error {
		t.mu.Lock()
		delete(t.observed, &registration)
		t.mu.Unlock()
		return registration.Unregister()
	}, nil
}

// instrument makes the instrument for a number of this type.
func (t *Telemetry) instrument(field string, v reflect.Value) (metric.Observable, error) {
	switch {
	case v.Type() == duration:
		return t.meter.Float64ObservableGauge(field, metric.WithUnit("s"))
	case v.CanUint():
		return t.meter.Int64ObservableCounter(field, metric.WithUnit("{count}"))
	case v.CanInt():
		return t.meter.Int64ObservableUpDownCounter(field, metric.WithUnit("{count}"))
	case v.Kind() == reflect.Bool:
		return t.meter.Int64ObservableUpDownCounter(field)
	}
	return t.meter.Float64ObservableGauge(field)
}

// reader returns an empty Stats of a part, and a function that reads the Stats; nil if there are
// none.
//
// The method is found by reflection. An interface in core would need a method that lists the
// counters again, in each module.
func reader(part any) (sample reflect.Value, read func(context.Context) (reflect.Value, error)) {
	if part == nil {
		return sample, nil
	}
	stats := reflect.ValueOf(part).MethodByName("Stats")
	if !stats.IsValid() || stats.Type().NumOut() == 0 || stats.Type().Out(0).Kind() != reflect.Struct {
		return sample, nil
	}
	m := stats.Type()
	sample = reflect.Zero(m.Out(0))
	switch {
	case m.NumIn() == 0 && m.NumOut() == 1:
		read = func(context.Context) (reflect.Value, error) { return stats.Call(nil)[0], nil }
	case m.NumIn() == 1 && m.In(0) == reflect.TypeFor[context.Context]() && m.NumOut() == 2 && m.Out(1) == reflect.TypeFor[error]():
		read = func(ctx context.Context) (reflect.Value, error) {
			out := stats.Call([]reflect.Value{reflect.ValueOf(ctx)})
			err, _ := out[1].Interface().(error)
			return out[0], err
		}
	}
	return sample, read
}

// A walk visits the numbers in a Stats.
type walk struct {
	sample bool // visit one element of each list and map, even if it is empty
	visit  func(field string, v reflect.Value, attributes []attribute.KeyValue)
}

func (w *walk) value(field string, v reflect.Value, attributes []attribute.KeyValue) {
	switch t, kind := v.Type(), v.Kind(); {
	case kind == reflect.Struct:
		for f, v := range v.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && v.Kind() == reflect.Struct {
				w.value(field, v, attributes)
			} else if f.IsExported() && name != "-" {
				w.value(field+"."+snake(cmp.Or(name, f.Name)), v, attributes)
			}
		}
	case w.sample && (kind == reflect.Map || kind == reflect.Slice):
		w.value(field, reflect.Zero(t.Elem()), nil)
	case kind == reflect.Map:
		of := t.Key()
		if of.PkgPath() == "" && t.Elem().Kind() == reflect.Struct { // a string, for LaneStats
			of = t.Elem()
		}
		for key, v := range v.Seq2() {
			w.value(field, v, with(attributes, of, key))
		}
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		for _, v := range v.Seq2() {
			if name := v.FieldByName("Name"); name.IsValid() { // otherwise the elements cannot be told apart
				w.value(field, v, with(attributes, t.Elem(), name))
			}
		}
	case t == duration || kind == reflect.Bool || t.PkgPath() == "" && v.CanConvert(float): // types with other names are ids and states
		w.visit(field, v, attributes)
	}
}

var (
	duration, float = reflect.TypeFor[time.Duration](), reflect.TypeFor[float64]()
	hump            = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// count is an integer or a boolean.
func count(v reflect.Value) int64 {
	switch {
	case v.CanUint():
		return int64(min(v.Uint(), math.MaxInt64))
	case v.CanInt():
		return v.Int()
	}
	return map[bool]int64{true: 1}[v.Bool()]
}

// measure is a duration or a float.
func measure(v reflect.Value) float64 {
	if v.Type() == duration {
		return time.Duration(v.Int()).Seconds()
	}
	return v.Float()
}

// with adds the attribute that tells elements apart: "lane" for LaneStats, "state" for State, and
// "key" for a type without a name.
func with(attributes []attribute.KeyValue, t reflect.Type, value reflect.Value) []attribute.KeyValue {
	key := "key"
	if t.PkgPath() != "" {
		key = snake(strings.TrimSuffix(t.Name(), "Stats"))
	}
	return append(slices.Clip(attributes), attr(key, fmt.Sprint(value)))
}

// snake is a name such as maxAge or LaneStats in the form max_age.
func snake(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}_$2")) }
