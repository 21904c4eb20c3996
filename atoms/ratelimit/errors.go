package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrExceedsBurst is returned for a request for more tokens than the bucket holds. They can
// never be in the bucket together. Use [errors.Is].
var ErrExceedsBurst = errors.New("ratelimit: more tokens at once than the burst")

// A refusal is an error that names the limiter. Each limiter makes its refusals once.
type refusal struct {
	limiter, what string
	is            error
}

func (e *refusal) Error() string { return fmt.Sprintf("ratelimit: limiter %q %s", e.limiter, e.what) }
func (e *refusal) Unwrap() error { return e.is }

// A DeadlineError is returned at once by a wait that would outlast the deadline of its
// context. Nothing is taken. It is [context.DeadlineExceeded] for errors.Is.
type DeadlineError struct {
	Limiter string        // its name
	Wait    time.Duration // how long the wait would have been; [InfDuration]: for ever
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
