package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// operationContext is an Operation in its role as the context of its body: the
// same memory with another set of methods. It has the values of the context the
// item was enqueued with, but not its end: it is cancelled only by Cancel,
// Close and Options.Timeout. A real cancellable context is made when somebody first asks for Done.
type operationContext Operation

// cancellation is the real context behind an operationContext.
type cancellation struct {
	context.Context
	cancel context.CancelCauseFunc
}

// origin is what an operation needs of the context it was enqueued with, where that is
// more than the values: the operation that it belongs to, of which nothing else is kept,
// or operations that each enqueue the next would keep all of their ancestors alive; and
// the deadline, if the end of that context cancels the operation.
type origin struct {
	context.Context
	parent   OperationID
	deadline time.Time // zero: none
}

// baseOf is the context that gives an operation enqueued with ctx its values, and its
// deadline unless that is zero. It asks ctx for nothing, because callers may hold locks.
func baseOf(ctx context.Context, deadline time.Time) context.Context {
	parent, ok := ctx.(*operationContext)
	switch {
	case !ok && deadline.IsZero():
		return ctx
	case !ok:
		return &origin{ctx, 0, deadline}
	}
	base := parent.base
	if from, ok := base.(*origin); ok {
		base = from.Context
	}
	return &origin{base, parent.id, deadline}
}

// causedContext is a context made by CausedBy.
type causedContext struct {
	context.Context
	signal Signal
	link   *link
}

// Keys of what the nearest context knows that has it.
type (
	causeKey  struct{} // the causedContext
	parentKey struct{} // the operation that enqueues, by its id
)

// CausedBy returns a context for items that are enqueued because of s, for example in a
// handler of s. The parent of their operations is the operation that raised s. The
// signals that these operations raise are caused by s, unless the body names another
// cause; see [Propagation]. Items that these operations enqueue are caused by s as well.
// Their parent is the operation that enqueued them.
func CausedBy(ctx context.Context, s Signal) context.Context {
	return &causedContext{ctx, s, &link{name: s.Name, up: s.cause}}
}

// CauseFrom returns the signal that was passed to [CausedBy]. It finds the signal in the
// context that CausedBy made, and in the context of a body whose item was enqueued with
// that context.
func CauseFrom(ctx context.Context) (Signal, bool) {
	c, ok := ctx.Value(causeKey{}).(*causedContext)
	if !ok {
		return Signal{}, false
	}
	return c.signal, true
}

func (c *causedContext) Value(key any) any {
	switch {
	case key == causeKey{}:
		return c
	case key == parentKey{} && c.signal.Operation != 0:
		return c.signal.Operation
	}
	return c.Context.Value(key)
}

// addCause adds because of what the operation runs, unless n has a cause.
func (o *Operation) addCause(n *note) {
	if n.cause != nil || o.base == context.Background() {
		return
	}
	if c, ok := o.base.Value(causeKey{}).(*causedContext); ok {
		n.cause = c.link
	}
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
		if c.engine.opts.Timeout > 0 {
			timed, stop := context.WithDeadlineCause(ctx, c.timeout(), ErrTimeout)
			real = &cancellation{timed, func(cause error) {
				cancel(cause)
				stop()
			}}
		}
		c.context.Store(real)
	}
	return real
}

func (o *Operation) cancelWith(cause error) { (*operationContext)(o).real().cancel(cause) }

// Deadline is when the context ends by itself, that of [Options.Timeout] or the
// enqueuer's, if that cancels the operation.
func (c *operationContext) Deadline() (deadline time.Time, ok bool) {
	if from, is := c.base.(*origin); is {
		deadline = from.deadline
	}
	if c.engine.opts.Timeout > 0 {
		if at := c.timeout(); deadline.IsZero() || at.Before(deadline) {
			deadline = at
		}
	}
	return deadline, !deadline.IsZero()
}

// timeout is when Options.Timeout is over. The body has started.
func (c *operationContext) timeout() time.Time {
	return c.engine.clock.wall(later(c.started, int64(c.engine.opts.Timeout)))
}

// timedOut is the error of a body, which is another one after a timeout.
func (o *Operation) timedOut(err error) error {
	real := o.context.Load()
	switch {
	case err == nil || real == nil || context.Cause(real) != ErrTimeout || errors.Is(err, ErrTimeout):
		return err
	case err == context.DeadlineExceeded:
		return ErrTimeout
	}
	return fmt.Errorf("%w: %w", ErrTimeout, err)
}

func (c *operationContext) Done() <-chan struct{} { return c.real().Done() }

func (c *operationContext) Err() error { return c.real().Err() }

func (c *operationContext) Value(key any) any {
	switch key {
	case operationKey{}:
		return (*Operation)(c)
	case parentKey{}:
		return c.id
	}
	real := c.context.Load()
	if real == nil {
		return context.WithoutCancel(c.base).Value(key) // Cause must not find the enqueuer's
	}
	return real.Value(key)
}

func (c *operationContext) String() string { return "core.Operation(" + c.id.String() + ")" }
