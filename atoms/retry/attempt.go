package retry

import (
	"context"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
)

// Attempt returns the number of the attempt to which ctx belongs. The first attempt is 1, the
// first retry is 2. Outside of attempts it is 1. It is also 1 after the end of the attempt,
// and in an operation that an attempt has enqueued. If Retriers are nested, the innermost one
// counts.
func Attempt(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attemptContext); ok && a.operation == core.OperationFrom(ctx) && !a.ended.Load() {
		return a.number
	}
	return 1
}

type attemptKey struct{}

// attemptContext is the context of a second or later attempt. A first attempt needs it only
// inside another attempt; otherwise a first attempt allocates nothing.
type attemptContext struct {
	context.Context
	number    int
	operation *core.Operation
	ended     atomic.Bool
}

func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// numbered is the number of running attempts that have an attemptContext. While it is 0,
// first does not look for such a context: in an operation, that would allocate.
var numbered atomic.Int64

// first makes the first attempt.
func (r *Retrier) first(ctx context.Context, work func(context.Context) error) error {
	if numbered.Load() > 0 && Attempt(ctx) > 1 {
		return r.numbered(ctx, core.OperationFrom(ctx), 1, work)
	}
	return r.attempt(ctx, work)
}

// numbered makes attempt n with an attemptContext.
func (r *Retrier) numbered(ctx context.Context, on *core.Operation, n int, work func(context.Context) error) error {
	c := &attemptContext{Context: ctx, number: n, operation: on}
	numbered.Add(1)
	defer func() {
		c.ended.Store(true)
		numbered.Add(-1)
	}()
	return r.attempt(c, work)
}

// attempt calls work.
func (r *Retrier) attempt(ctx context.Context, work func(context.Context) error) error {
	if r.opts.AttemptTimeout > 0 {
		return r.timed(ctx, work)
	}
	return work(ctx)
}

func (r *Retrier) timed(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.AttemptTimeout, ErrAttemptTimeout)
	defer cancel()
	return work(ctx)
}
