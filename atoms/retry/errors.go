package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why a [Retrier] gave up on an error that it would have retried: the Cause of an
// [Error]. If the context has ended, its cause is the Cause.
var (
	// ErrAttempts: there were as many attempts as [Options.Attempts] allows.
	ErrAttempts = errors.New("retry: no attempts left")
	// ErrMaxElapsed: the next attempt would start later than [Options.MaxElapsed]
	// allows.
	ErrMaxElapsed = errors.New("retry: no time left")
	// ErrDeadline: the context of the call has a deadline that is not later than the
	// next attempt would start. It matches [context.DeadlineExceeded].
	ErrDeadline = fmt.Errorf("retry: the next attempt would be too late: %w", context.DeadlineExceeded)
	// ErrMaxDelay: the error asks for a longer delay than [Options.MaxDelay]
	// allows.
	ErrMaxDelay = errors.New("retry: the delay asked for is too long")
	// ErrStopped: [Options.Backoff] returned a negative delay.
	ErrStopped = errors.New("retry: stopped by the backoff")
	// ErrBudget: [Options.Budget] is spent.
	ErrBudget = errors.New("retry: the budget is spent")
)

// ErrAttemptTimeout is the cause of the context of an attempt that has taken longer
// than [Options.AttemptTimeout]. It matches [context.DeadlineExceeded].
var ErrAttemptTimeout = fmt.Errorf("retry: the attempt timed out: %w", context.DeadlineExceeded)

// An Error says that a [Retrier] gave up, why, and after which error. [errors.Is] and
// [errors.As] look into both Cause and Err.
type Error struct {
	Attempts int   // how many there were
	Cause    error // why there was no other attempt
	Err      error // the error of the last attempt, without the mark of [After]

	mark *afterError // that mark, for a Retrier further out; nil: there was none
}

func giveUp(attempts int, cause, err error) *Error {
	mark, _ := err.(*afterError)
	return &Error{attempts, cause, unmark(err), mark}
}

// Error says it in one line.
func (e *Error) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	why := ""
	if e.Cause != ErrAttempts {
		why = strings.TrimPrefix(e.Cause.Error(), "retry: ") + ": "
	}
	return fmt.Sprintf("retry: gave up after %d %s: %s%v", e.Attempts, attempts, why, e.Err)
}

// Unwrap returns Cause and Err.
func (e *Error) Unwrap() []error {
	if e.mark != nil {
		return []error{e.Cause, e.mark}
	}
	return []error{e.Cause, e.Err}
}

// Permanent marks an error that no other attempt can change, and is nil for nil. Do
// then returns err itself, without the mark, so that an outer Retrier decides for itself.
// If the marked error has been wrapped or joined, Do returns that error as it is, and the
// mark counts for the outer Retrier as well. [errors.Is] and [errors.As] see err
// through the mark.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// After marks an error with the delay before the next attempt, which replaces the
// backoff, for example when a server has asked for it; see [ParseRetryAfter]. A d of 0 or
// less means at once. It is nil for nil. [errors.Is] and [errors.As] see err through
// the mark. An [Error] and an [Event] have err itself, unless the marked error has been
// wrapped.
//
// An error of another package says the same by a method RetryAfter() time.Duration
// that returns more than 0. Of errors that wrap each other the outermost that asks for a
// delay counts, of joined errors the one that asks for the longest delay.
func After(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &afterError{err, d}
}

type afterError struct {
	err   error
	delay time.Duration
}

func (e *afterError) Error() string             { return e.err.Error() }
func (e *afterError) Unwrap() error             { return e.err }
func (e *afterError) RetryAfter() time.Duration { return e.delay }

// unmark returns the error that was given to After.
func unmark(err error) error {
	for {
		mark, ok := err.(*afterError)
		if !ok {
			return err
		}
		err = mark.err
	}
}

// askedDelay returns the delay that an error asks for, if any: that of the outermost error
// that asks, and of joined errors the longest.
func askedDelay(err error) (d time.Duration, ok bool) {
	switch e := err.(type) {
	case *afterError:
		return e.delay, true
	case interface{ RetryAfter() time.Duration }:
		if d = e.RetryAfter(); d > 0 {
			return d, true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return askedDelay(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if asked, asks := askedDelay(err); asks && (!ok || asked > d) {
				d, ok = asked, true
			}
		}
	}
	return d, ok
}
