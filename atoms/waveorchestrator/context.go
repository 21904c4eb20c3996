package waveorchestrator

import (
	"context"
	"sync"
	"time"
)

// workerContext is what a worker is given: the context of its operation, and a
// deadline. Quick workers do not ask whether it has ended, so the context that knows
// is made when somebody does. It knows nothing of the execution, which whoever keeps
// a context would keep as well.
type workerContext struct {
	context.Context           // of the operation
	deadline        time.Time // zero: none
	why             error     // the cause then
	own             deadline  // why, if it is the worker's own time

	mu     sync.Mutex
	real   context.Context // nil: not made
	cancel context.CancelFunc
}

func (c *workerContext) made() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.real != nil:
	case c.deadline.IsZero():
		c.real, c.cancel = context.WithCancel(c.Context)
	default:
		c.real, c.cancel = context.WithDeadlineCause(c.Context, c.deadline, c.why)
	}
	return c.real
}

// asked returns the context that was made, or nil.
func (c *workerContext) asked() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real
}

// end ends it. One that is made later ends with the operation.
func (c *workerContext) end() {
	if c.asked() != nil {
		c.cancel()
	}
}

func (c *workerContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

func (c *workerContext) Done() <-chan struct{} { return c.made().Done() }

func (c *workerContext) Err() error { return c.made().Err() }

func (c *workerContext) Value(key any) any {
	if real := c.asked(); real != nil {
		return real.Value(key)
	}
	return c.Context.Value(key)
}
