package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// The Cause of an [Error] says why a [Retrier] gave up. It is one of these errors, an error that
// names another option or, if the context of the call has ended, the cause of that context.
var (
	// ErrAttempts: there were as many attempts as [Options.Attempts] allows.
	ErrAttempts = errors.New("retry: no attempts left")
	// errMaxElapsed: the next attempt would start later than [Options.MaxElapsed]
	// allows.
	errMaxElapsed = errors.New("retry: no time left")
	// ErrDeadline: the next attempt would start at or after the deadline of the context
	// of the call. It matches [context.DeadlineExceeded].
	ErrDeadline = fmt.Errorf("retry: the next attempt would be too late: %w", context.DeadlineExceeded)
	// errMaxDelay: the error asks for a delay that is longer than [Options.MaxDelay].
	errMaxDelay = errors.New("retry: the delay asked for is too long")
	// errStopped: [Options.Backoff] returned a negative delay.
	errStopped = errors.New("retry: stopped by the backoff")
	// ErrBudget: [Options.Budget] is spent.
	ErrBudget = errors.New("retry: the budget is spent")
)

// ErrAttemptTimeout is the cause with which the context of an attempt ends after
// [Options.AttemptTimeout]. It matches [context.DeadlineExceeded].
var ErrAttemptTimeout = fmt.Errorf("retry: the attempt timed out: %w", context.DeadlineExceeded)

// An Error says that a [Retrier] gave up, why, and after which error. [errors.Is] and
// [errors.As] look into Cause and into Err.
type Error struct {
	Attempts int   // that were made
	Cause    error // why there was no further attempt; see [ErrAttempts]
	Err      error // error of the last attempt, without the mark of [After]

	mark *afterError // the mark that Err had, for an outer Retrier; nil: none
}

func giveUp(attempts int, cause, err error) *Error {
	mark, _ := err.(*afterError)
	return &Error{attempts, cause, unmark(err), mark}
}

// Error returns the text, in one line.
func (e *Error) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	why := ""
	if e.Cause != ErrAttempts {
		why = strings.TrimPrefix(guard.Text(e.Cause), "retry: ") + ": "
	}
	return fmt.Sprintf("retry: gave up after %d %s: %s%s", e.Attempts, attempts, why, guard.Text(e.Err))
}

// Unwrap returns Cause and Err.
func (e *Error) Unwrap() []error {
	if e.mark != nil {
		return []error{e.Cause, e.mark}
	}
	return []error{e.Cause, e.Err}
}

// Permanent marks an error that is not retried. Permanent(nil) is nil. [errors.Is] and
// [errors.As] see err through the mark.
//
// [Retrier.Do] returns err itself, without the mark, so an outer Retrier decides for itself.
// If the marked error has been wrapped or joined, Do returns it with the mark. Then an outer
// Retrier does not retry it either.
//
// An error of another package says the same with a method Permanent() bool that returns true,
// such as an error of durable.Permanent.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// permanent is an error that can say whether further attempts are of no use.
type permanent interface {
	error
	Permanent() bool
}

type permanentError struct{ err error }

func (e *permanentError) Permanent() bool { return true }
func (e *permanentError) Error() string   { return guard.Text(e.err) }
func (e *permanentError) Unwrap() error   { return e.err }

// After marks err, so that the next attempt starts after the delay d, for example because a
// server asked for it; see [ParseRetryAfter]. This delay replaces the delay of
// [Options.Backoff]. If d is 0 or negative, the next attempt starts at once. After(nil, d)
// is nil.
//
// [errors.Is] and [errors.As] see err through the mark. The field Err of an [Error] and of an
// [Event] is err without the mark. If the marked error has been wrapped, the field is the
// wrapping error, and the mark stays inside.
//
// An error of another package asks for a delay if it has a method RetryAfter() time.Duration
// that returns more than 0. If errors wrap each other, the outermost one that asks for a
// delay counts. If errors are joined, the longest delay counts.
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

func (e *afterError) Error() string             { return guard.Text(e.err) }
func (e *afterError) Unwrap() error             { return e.err }
func (e *afterError) RetryAfter() time.Duration { return e.delay }

// unmark removes the marks of After from the outside of err.
func unmark(err error) error {
	for {
		mark, ok := err.(*afterError)
		if !ok {
			return err
		}
		err = mark.err
	}
}

// askedDelay returns the delay that an error asks for, if any; see After.
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
