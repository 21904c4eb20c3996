package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrExceedsBurst matches the error of a request for more tokens than the bucket holds. Such a
// request could never pass. Use [errors.Is].
var ErrExceedsBurst = errors.New("ratelimit: more tokens at once than the burst")

// A refusal is an error that names the limiter. Each limiter makes its refusals once.
type refusal struct {
	limiter, what string
	is            error
}

func (e *refusal) Error() string { return fmt.Sprintf("ratelimit: limiter %q %s", e.limiter, e.what) }
func (e *refusal) Unwrap() error { return e.is }

// A DeadlineError says that the turn of a request would not come before the deadline of its
// context. So Wait returned at once and took nothing. It matches [context.DeadlineExceeded].
type DeadlineError struct {
	Limiter string        // the name of the limiter
	Wait    time.Duration // how long the request would wait; [InfDuration]: for ever
	Left    time.Duration // the time until the deadline
}

func (e *DeadlineError) Error() string {
	if e.Wait == InfDuration {
		return fmt.Sprintf("ratelimit: limiter %q: the wait would never end (is the limiter paused?), and the context has a deadline", e.Limiter)
	}
	return fmt.Sprintf("ratelimit: limiter %q: a wait of %v would outlast the deadline, which is in %v", e.Limiter, e.Wait, e.Left)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }
