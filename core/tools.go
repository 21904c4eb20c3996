package core

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"
)

// cacheLine keeps the fields before it and the fields after it on different cache lines.
type cacheLine [64]byte

func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// orNone returns the default for 0, and 0 for a negative value.
func orNone[N int | time.Duration](value *N, normally N) { *value = max(0, cmp.Or(*value, normally)) }

// need panics unless has is true. The message says what the caller needs.
func need(has bool, what string) {
	if !has {
		panic("core: " + what)
	}
}

func needContext(ctx context.Context, caller string) {
	need(ctx != nil, caller+" needs a context, not nil: context.Background() never ends")
}

func without[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}

// IsNil reports whether a part that a constructor gets as an interface is nil, or holds a nil
// pointer or function. So a constructor can return an error where a method call would panic. A
// nil *[Operation] is nil too, although its methods do nothing.
func IsNil(part any) bool {
	v := reflect.ValueOf(part)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return part == nil
}
