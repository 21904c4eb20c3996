// This file decides what defaults and nil mean.

package core

import (
	"cmp"
	"reflect"
	"time"
)

// orNone returns the default for 0, and 0 for a negative value.
func orNone[N int | time.Duration](value *N, normally N) { *value = max(0, cmp.Or(*value, normally)) }

// need panics unless has is true. The message says what the caller needs.
func need(has bool, what string) {
	if !has {
		panic("core: " + what)
	}
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
