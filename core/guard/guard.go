// Package guard calls small methods of a program's types where a panic in one must not skip
// what follows: methods of errors such as Error, Is, Unwrap or Permanent, and functions such
// as decoders and keys. The typical panic is that of a nil pointer in an error:
//
//	var e *fs.PathError
//	return e // e.Error() panics
//
// A panic counts as the most harmless answer: a text that says what panicked, false, or an
// error. All functions are safe for concurrent use, if what they call is. Unless something panics,
// only As, Ask and Failed allocate: what they find. [runtime.Goexit] is not held back.
package guard

import (
	"errors"
	"fmt"
)

// Do calls f. If f panics, it returns an error that says so: what names the function.
func Do(what string, f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(what, v)
		}
	}()
	f()
	return nil
}

// Value calls f and returns its value. If f panics, it returns an error that says so: what names
// the function.
func Value[V any](what string, f func() V) (v V, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(what, r)
		}
	}()
	return f(), nil
}

func panicked(what string, v any) error { return fmt.Errorf("guard: %s panicked: %v", what, v) }

// Text returns err.Error(), or "" for nil. If that panics, it returns a text with the type of err and the
// panic.
func Text(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("error of type %T, whose method Error panicked: %v", err, v)
		}
	}()
	return err.Error()
}

// Is is [errors.Is], and false if a method of err panics.
func Is(err, target error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return errors.Is(err, target)
}

// As finds the first error in the tree of err that has type E, which may be an interface.
// It finds none if a method of err panics.
func As[E any](err error) (found E, ok bool) {
	defer func() {
		if recover() != nil {
			var none E
			found, ok = none, false
		}
	}()
	ok = errors.As(err, &found)
	return found, ok
}

// Ask finds the first error in the tree of err that has type E, and returns the answer of ask about
// it. It returns the zero answer and false if there is none, or if ask or a method of err panics.
//
//	type permanent interface{ Permanent() bool }
//	is, _ := guard.Ask(err, permanent.Permanent)
func Ask[E, A any](err error, ask func(E) A) (answer A, ok bool) {
	defer func() {
		if recover() != nil {
			var none A
			answer, ok = none, false
		}
	}()
	var found E
	if !errors.As(err, &found) {
		return answer, false
	}
	return ask(found), true
}

// outcome is an error that says itself whether it stands for a failure.
type outcome interface{ Failed() bool }

// Failed says whether err stands for a failure: true for an error, false for nil. An error that is an outcome
// and no failure, such as "come back later", says so with a method
//
//	Failed() bool
//
// that returns false. The first error in the tree of err that has the method decides. If the method panics, Failed is
// true. What counts failures or acts on them (breakers, retriers, spans, logs) asks it in place of err != nil.
func Failed(err error) bool {
	switch err.(type) {
	case nil:
		return false
	case outcome, interface{ Unwrap() error }, interface{ Unwrap() []error }, interface{ As(any) bool }:
	default:
		return true // nothing else can say it, and this allocates nothing
	}
	failed, says := Ask(err, outcome.Failed)
	return failed || !says
}
