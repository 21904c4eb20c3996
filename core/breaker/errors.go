package breaker

import (
	"errors"
	"fmt"
	"time"
)

// ErrOpen matches every [OpenError].
var ErrOpen = errors.New("breaker: the circuit is open")

// An OpenError says that a breaker allows no call.
type OpenError struct {
	Name     string        // of the breaker
	Failures int           // that count
	Wait     time.Duration // time until calls are allowed; 0 if all trials run already
}

// RetryAfter is Wait. If package retry is told to retry this error, it waits for that long.
func (e *OpenError) RetryAfter() time.Duration { return e.Wait }

func (e *OpenError) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf("breaker: %s is half-open, and as many trials run as may", e.Name)
	}
	return fmt.Sprintf("breaker: %s is open after %d failures, for another %v", e.Name, e.Failures, e.Wait)
}

// Is reports whether target is [ErrOpen].
func (e *OpenError) Is(target error) bool { return target == ErrOpen }
