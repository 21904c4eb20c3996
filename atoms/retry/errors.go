package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why a [Retrier] gave up on an error that it would have retried: the Cause of an
// [Error]. The other cause is that of a context that has ended.
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
	// ErrBudget: [Options.Budget] is spent.
	ErrBudget = errors.New("retry: the budget is spent")
)

// ErrAttemptTimeout is the cause of the context of an attempt that has taken longer
// than [Options.AttemptTimeout]. It matches [context.DeadlineExceeded].
var ErrAttemptTimeout = fmt.Errorf("retry: the attempt timed out: %w", context.DeadlineExceeded)

// An Error says that a [Retrier] gave up, why, and on what. [errors.Is] and
// [errors.As] look into both Cause and Err.
type Error struct {
	Attempts int   // how many there were
	Cause    error // why there was no further one
	Err      error // what the last one returned
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
func (e *Error) Unwrap() []error { return []error{e.Cause, e.Err} }

// Permanent marks an error that no further attempt will mend, and is nil for nil. Do
// then returns err itself, without the mark, so that a Retrier further out decides for
// itself. If the marked error has been wrapped or joined on its way, Do returns that as
// it is, and the mark counts further out as well. [errors.Is] and [errors.As] see err
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

// After marks an error after which the next attempt should come after d, whatever
// the backoff says, as when a server has said so; see [ParseRetryAfter]. A d of 0 or
// less means at once. It is nil for nil. [errors.Is] and [errors.As] see err through
// the mark.
//
// An error of another package says the same by a method RetryAfter() time.Duration
// that returns more than 0. Of errors that wrap each other the outermost that asks for a
// delay counts, of those that are joined the one that asks for the longest.
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

// askedDelay returns the delay that an error asks for, if it does: the outermost that
// does, and of several joined the one that asks for the longest.
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
