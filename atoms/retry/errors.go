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
// then returns err itself; if the marked error has been wrapped on its way, it
// returns that as it is. [errors.Is] and [errors.As] see err through the mark.
//
// The mark is for the Retrier that made the attempt. One further out, which is
// returned err, decides for itself.
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
// that returns more than 0, be it the error itself or one that it wraps.
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

// asking is an error that asks for a delay.
type asking interface {
	error
	RetryAfter() time.Duration
}

// askedDelay returns the delay that an error asks for, if it does.
func askedDelay(err error) (d time.Duration, ok bool) {
	asks, ok := errors.AsType[asking](err)
	if !ok {
		return 0, false
	}
	d = asks.RetryAfter()
	_, marked := asks.(*afterError)
	return d, marked || d > 0
}
