package scenario

import (
	"context"
	"time"
)

// Pause waits for d, in place of real work. If ctx ends first, it returns the cause of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
