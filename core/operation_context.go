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

// ended takes the place of the real context after the body has returned, so that
// a context that outlives its body neither runs on nor keeps anything alive.
var ended = func() *cancellation {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.Canceled)
	return &cancellation{ctx, cancel}
}()

func (c *operationContext) real() *cancellation {
	if real := c.context.Load(); real != nil {
		return real
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.base))
	real := &cancellation{ctx, cancel}
	if !c.context.CompareAndSwap(nil, real) {
		cancel(nil)
		return c.context.Load()
	}
	return real
}

// end is called when the body has returned.
func (c *operationContext) end() {
	if real := c.context.Swap(ended); real != nil {
		real.cancel(context.Canceled)
	}
}

func (c *operationContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

func (c *operationContext) Done() <-chan struct{} { return c.real().Done() }

func (c *operationContext) Err() error {
	if real := c.context.Load(); real != nil {
		return real.Err()
	}
	return nil
}

func (c *operationContext) Value(key any) any {
	if key == (operationKey{}) {
		return (*Operation)(c)
	}
	real := c.context.Load()
	if real == nil {
		return context.WithoutCancel(c.base).Value(key) // Cause must not find the enqueuer's
	}
	if v := real.Value(key); v != nil || real != ended {
		return v
	}
	return context.WithoutCancel(c.base).Value(key)
}

func (c *operationContext) String() string { return "core.Operation(" + c.id.String() + ")" }
