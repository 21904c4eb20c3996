package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrExceedsBurst is returned for more tokens than the bucket holds, which would
// never be there together. Use [errors.Is].
var ErrExceedsBurst = errors.New("ratelimit: more tokens at once than the burst")

// A DeadlineError is returned by a wait that would outlast the deadline of its
// context. It comes at once, nothing is taken, and errors.Is says that it is
// [context.DeadlineExceeded].
type DeadlineError struct {
	Wait time.Duration // how long it would have taken; [InfDuration]: the limiter is paused
	Left time.Duration // until the deadline
}

func (e *DeadlineError) Error() string {
	if e.Wait == InfDuration {
		return "ratelimit: as things stand the turn would never come (is the limiter paused?), and the context has a deadline"
	}
	return fmt.Sprintf("ratelimit: a wait of %v would outlast the deadline, which is in %v", e.Wait, e.Left)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

var (
	errClosed    = fmt.Errorf("ratelimit: %w", closedError{})
	errFull      = fmt.Errorf("ratelimit: as many wait as may: %w", core.ErrFull)
	errKeys      = fmt.Errorf("ratelimit: all of MaxKeys keys are waited for: %w", core.ErrFull)
	errCancelled = fmt.Errorf("ratelimit: reservation was cancelled: %w", core.ErrCancelled)
)

// closedError is core.ErrClosed in the words of a limiter.
type closedError struct{}

func (closedError) Error() string        { return "limiter is closed" }
func (closedError) Is(target error) bool { return target == core.ErrClosed }
