package waveorchestrator

import (
	"context"
	"sync"
	"time"
)

// workerContext is the context of a worker: the context of the operation, with a deadline. The
// context with a timer is made only when a worker calls Done or Err, because quick workers do not
// call them. It does not refer to the execution. So a worker that keeps its context does not keep
// the execution in memory.
type workerContext struct {
	deadline time.Time // zero: none
	cause    error     // cause of the end at the deadline

	mu     sync.Mutex
	ctx    context.Context    // context of the operation; has the deadline when cancel is set
	cancel context.CancelFunc // not called: ctx ends with the operation
}

func (c *workerContext) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

func (c *workerContext) timed() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cancel != nil:
	case c.deadline.IsZero():
		c.ctx, c.cancel = context.WithCancel(c.ctx)
	default:
		c.ctx, c.cancel = context.WithDeadlineCause(c.ctx, c.deadline, c.cause)
	}
	return c.ctx
}

func (c *workerContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }
func (c *workerContext) Done() <-chan struct{}       { return c.timed().Done() }
func (c *workerContext) Err() error                  { return c.timed().Err() }
func (c *workerContext) Value(key any) any           { return c.current().Value(key) }
