package retry

import (
	"context"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
)

// Attempt returns the number of the attempt that was given ctx, or a context made
// from it: 2 for the first retry. It is 1 on a first attempt, outside of attempts, and in
// an operation that an attempt has enqueued. Of nested Retriers the innermost counts.
func Attempt(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attemptContext); ok && a.operation == core.OperationFrom(ctx) && !a.ended.Load() {
		return a.number
	}
	return 1
}

type attemptKey struct{}

// attemptContext is the context of an attempt that is not the first. A first attempt needs
// one only inside of such an attempt, so that as a rule nothing is allocated.
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

// numbered is how many attempts are under way whose context has a number. While it is 0,
// first does not look for a number, which in an operation would allocate.
var numbered atomic.Int64

// first makes the first attempt.
func (r *Retrier) first(ctx context.Context, work func(context.Context) error) error {
	if numbered.Load() > 0 && Attempt(ctx) > 1 {
		return r.numbered(ctx, core.OperationFrom(ctx), 1, work)
	}
	return r.attempt(ctx, work)
}

// numbered makes an attempt that can know its number.
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
