package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Example shows an error whose methods panic, because it is a nil pointer.
func Example() {
	var e *fs.PathError
	var err error = e

	fmt.Println(guard.Text(err))
	fmt.Println(guard.Is(err, fs.ErrNotExist))
	// Output:
	// error of type *fs.PathError, whose method Error panicked: runtime error: invalid memory address or nil pointer dereference
	// false
}

// hostile panics in each of its methods.
type hostile struct{ _ []int }

func (hostile) Error() string   { panic("Error") }
func (hostile) Is(error) bool   { panic("Is") }
func (hostile) As(any) bool     { panic("As") }
func (hostile) Unwrap() error   { panic("Unwrap") }
func (hostile) Permanent() bool { panic("Permanent") }
func (hostile) Failed() bool    { panic("Failed") }

type permanent interface{ Permanent() bool }

type answers bool

func (answers) Error() string     { return "answers" }
func (a answers) Permanent() bool { return bool(a) }

func TestHostileErrors(t *testing.T) {
	for _, err := range []error{hostile{}, fmt.Errorf("wrapped: %w", hostile{}), errors.Join(errors.New("first"), hostile{})} {
		if guard.Text(err) == "" {
			t.Errorf("Text of %T is empty", err)
		}
		if guard.Is(err, context.Canceled) {
			t.Errorf("%T is context.Canceled", err)
		}
		if _, ok := guard.As[*fs.PathError](err); ok {
			t.Errorf("%T is a *fs.PathError", err)
		}
		if is, ok := guard.Ask(err, permanent.Permanent); is || ok {
			t.Errorf("%T: Permanent %v %v, want no answer", err, is, ok)
		}
		if !guard.Failed(err) {
			t.Errorf("%T: Failed false, want true", err)
		}
	}
}

func TestAnswers(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", answers(true))
	if is, ok := guard.Ask(err, permanent.Permanent); !is || !ok {
		t.Errorf("Ask = %v %v, want true true", is, ok)
	}
	if found, ok := guard.As[answers](err); !ok || !bool(found) {
		t.Errorf("As = %v %v", found, ok)
	}
	if !guard.Is(fmt.Errorf("%w", context.Canceled), context.Canceled) {
		t.Error("Is = false")
	}
	if got := guard.Text(nil); got != "" {
		t.Errorf("Text(nil) = %q", got)
	}
}

// later is an outcome that is no failure.
type later struct{ failed bool }

func (later) Error() string  { return "later" }
func (l later) Failed() bool { return l.failed }

// panics has a method Failed that panics, and is a proper error otherwise.
type panics struct{ error }

func (panics) Failed() bool { panic("Failed") }

func TestFailed(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("broken"), true},
		{later{}, false},
		{fmt.Errorf("wrapped: %w", later{}), false},
		{errors.Join(errors.New("first"), later{}), false},
		{later{failed: true}, true},
		{panics{errors.New("broken")}, true},
	} {
		if got := guard.Failed(c.err); got != c.want {
			t.Errorf("Failed(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

func TestFunctions(t *testing.T) {
	if v, err := guard.Value("key", func() int { return 3 }); v != 3 || err != nil {
		t.Errorf("Value = %d, %v", v, err)
	}
	if _, err := guard.Value("key", func() int { panic("no") }); err == nil || err.Error() != "guard: key panicked: no" {
		t.Errorf("error %v", err)
	}
	err := guard.Do("the decoder", func() { panic(nil) })
	if err == nil || !strings.HasPrefix(err.Error(), "guard: the decoder panicked: ") {
		t.Errorf("error %v", err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", answers(true))
	if n := testing.AllocsPerRun(100, func() {
		guard.Text(err)
		guard.Is(err, context.Canceled)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
