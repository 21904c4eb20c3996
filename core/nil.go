package core

import "reflect"

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
