package core_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
)

// callWith calls a method with arguments that are zero but for numbers, functions,
// which do nothing, and the context; what it returns is called too if it is a sequence. It
// returns what that panicked with, or nil.
func callWith(method reflect.Value, ctx context.Context) (panicked any) {
	defer func() { panicked = recover() }()
	nothing := func(t reflect.Type) reflect.Value {
		return reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
			for i := range t.NumOut() {
				results = append(results, reflect.Zero(t.Out(i)))
			}
			return results
		})
	}
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		switch t := method.Type().In(i); {
		case t.Kind() == reflect.Func:
			args = append(args, nothing(t))
		case t == reflect.TypeFor[context.Context]() && ctx != nil:
			args = append(args, reflect.ValueOf(ctx))
		case t.Kind() == reflect.Int:
			args = append(args, reflect.ValueOf(1)) // which is in range
		default:
			args = append(args, reflect.Zero(t))
		}
	}
	for _, result := range method.Call(args) {
		if result.Kind() == reflect.Func && result.Type().NumIn() == 1 {
			result.Call([]reflect.Value{nothing(result.Type().In(0))})
		}
	}
	return nil
}

// Each method of a coordinator that no constructor has made says what to do.
func TestZeroCoordinatorSaysWhatToDo(t *testing.T) {
	for _, zero := range []any{new(core.Coordinator[int]), new(core.ResultCoordinator[int, int]), new(core.Dispatcher), new(core.Processor)} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			text := fmt.Sprint(callWith(v.Method(i), t.Context()))
			if !strings.HasPrefix(text, "core: ") || !strings.Contains(text, "NewCoordinator") {
				t.Errorf("%T.%s panicked with %q, want what to do", zero, v.Type().Method(i).Name, text)
			}
		}
	}
}

// Each method that is given a nil context says what to do.
func TestNilContextSaysWhatToDo(t *testing.T) {
	results := answers(t, core.Options{})
	finished, err := results.Submit(t.Context(), answering("done"))
	checkError(t, "Submit", err, nil)
	for _, v := range []any{
		core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{})),
		results, finished, core.Must(core.NewDispatcher(core.Options{})),
	} {
		v := reflect.ValueOf(v)
		for i := range v.NumMethod() {
			m := v.Method(i)
			if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			if m.Type().NumIn() == 2 && m.Type().In(1) == reflect.TypeFor[core.OperationID]() {
				continue // asks for the operation first: see Future.Wait
			}
			if text := fmt.Sprint(callWith(m, nil)); !strings.HasPrefix(text, "core: ") || !strings.Contains(text, "context.Background()") {
				t.Errorf("%s.%s panicked with %q, want what to do", v.Type(), v.Type().Method(i).Name, text)
			}
		}
	}
}
