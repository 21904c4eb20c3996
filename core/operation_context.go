package core

import (
	"context"
	"time"
)

// operationContext is an Operation in its role as the context of its body: the
// same memory with another set of methods. It has the values of the context the
// item was enqueued with, but not its end: it is cancelled only by Cancel and
// Close. A real cancellable context is made when somebody first asks for Done.
type operationContext Operation

// cancellation is the real context behind an operationContext.
type cancellation struct {
	context.Context
	cancel context.CancelCauseFunc
}

// childContext is what an operation needs of its parent's context: the values, and
// who that was. Without it operations that each enqueue the next would keep all of
// their ancestors alive.
type childContext struct {
	context.Context
	parent OperationID
}

// baseOf is the context that gives an operation enqueued with ctx its values.
func baseOf(ctx context.Context) context.Context {
	parent, ok := ctx.(*operationContext)
	if !ok {
		return ctx
	}
	base := parent.base
	if child, ok := base.(*childContext); ok {
		base = child.Context
	}
	return &childContext{base, parent.id}
}

// ended is the context of an operation that has ended before it needed one.
var ended = func() *cancellation {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.Canceled)
	return &cancellation{ctx, cancel}
}()

// real returns the real context, making it if need be. One that is made is
// cancelled when the body has returned, so that a context that outlives its body
// neither runs on nor keeps anything alive.
func (c *operationContext) real() *cancellation {
	if real := c.context.Load(); real != nil {
		return real
	}
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	real := c.context.Load()
	switch {
	case real != nil:
	case c.status&StatusFinished != 0:
		real = ended
	default:
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.base))
		real = &cancellation{ctx, cancel}
		c.context.Store(real)
	}
	return real
}

func (c *operationContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

func (c *operationContext) Done() <-chan struct{} { return c.real().Done() }

func (c *operationContext) Err() error { return c.real().Err() }

func (c *operationContext) Value(key any) any {
	if key == (operationKey{}) {
		return (*Operation)(c)
	}
	real := c.context.Load()
	if real == nil {
		return context.WithoutCancel(c.base).Value(key) // Cause must not find the enqueuer's
	}
	return real.Value(key)
}

func (c *operationContext) String() string { return "core.Operation(" + c.id.String() + ")" }
