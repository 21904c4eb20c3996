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

// ErrTooLate matches the error of a request whose turn would not come before the deadline of its
// context. So Wait returned at once and took nothing. The error also matches
// [context.DeadlineExceeded].
var ErrTooLate = errors.New("ratelimit: the turn of the request would come after its deadline")

// A refusal is an error that names the limiter. Each limiter makes its refusals once.
type refusal struct {
	limiter, what string
	is            error
}

func (e *refusal) Error() string { return fmt.Sprintf("ratelimit: limiter %q %s", e.limiter, e.what) }
func (e *refusal) Unwrap() error { return e.is }

// A deadlineError matches ErrTooLate.
type deadlineError struct {
	limiter string
	wait    time.Duration // infinite: for ever
	left    time.Duration // until the deadline
}

func (e *deadlineError) Error() string {
	if e.wait == infinite {
		return fmt.Sprintf("ratelimit: limiter %q: the wait would never end (is the limiter paused?), and the context has a deadline", e.limiter)
	}
	return fmt.Sprintf("ratelimit: limiter %q: a wait of %v would outlast the deadline, which is in %v", e.limiter, e.wait, e.left)
}

func (e *deadlineError) Unwrap() []error { return []error{ErrTooLate, context.DeadlineExceeded} }
