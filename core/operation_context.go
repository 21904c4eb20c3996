// This file decides when the context of a body ends.

package core

import (
	"cmp"
	"context"
	"fmt"
	"runtime/trace"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/ctxkey"
)

// operationContext is an Operation as the context of its body: the same memory with other methods.
// It has the values of the Enqueue's context, but does not end with it: only Cancel, Close and
// Options.Timeout cancel it. A real cancellable context is made at the first call of Done.
type operationContext Operation

// origin is what an operation keeps of its Enqueue's context besides the values: the id
// of the operation that the context belongs to, and the deadline, if the end of that
// context cancels the operation. It does not keep that operation, because in a chain of
// operations, each would keep all its ancestors alive.
type origin struct {
	context.Context
	parent   OperationID
	deadline time.Time // zero: none
}

// baseOf returns the context with the values of ctx, and with the deadline unless that is
// zero. It calls no method of ctx, because callers may hold locks.
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
	if t, ok := base.(*traced); ok {
		base = t.Context
	}
	return &origin{base, parent.owner.ID, deadline}
}

// asked is in place of the real context after a call of Err in the body, if there was no other need of a real
// one. So the next calls of Err need no lock. Operations without other details share askedOnly.
var asked, askedOnly = new(cancellation), new(details)

// made returns the real context, or nil if there is none.
func (c *operationContext) made() *cancellation {
	if d := c.rare.Load(); d != nil {
		if real := d.context.Load(); real != asked {
			return real
		}
	}
	return nil
}

// ended is the context of an operation that has ended before it needed a real one.
var ended = func() *cancellation {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.Canceled)
	return &cancellation{ctx, cancel}
}()

var endedOnly = new(details) // likewise

func init() {
	askedOnly.context.Store(asked)
	endedOnly.context.Store(ended)
}

// real returns the real context, and makes it if there is none. It is cancelled
// when the body has returned, so that a context that outlives its body has no
// timer and keeps nothing alive.
func (c *operationContext) real() *cancellation {
	if real := c.made(); real != nil {
		return real
	}
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if real := c.made(); real != nil {
		return real
	}
	if (*Operation)(c).status()&StatusFinished != 0 {
		return ended
	}
	d := (*Operation)(c).details()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.base))
	d.real = cancellation{ctx, cancel}
	if at := c.timeout(); !at.IsZero() {
		timed, stop := context.WithDeadlineCause(ctx, at, ErrTimeout)
		d.real = cancellation{timed, func(cause error) {
			cancel(cause)
			stop()
		}}
	}
	d.context.Store(&d.real)
	return &d.real
}

func (o *Operation) cancelWith(cause error) { (*operationContext)(o).real().cancel(cause) }

// Deadline is when the context ends by itself: at the end of [Options.Timeout], or at the
// deadline of the enqueuer's context if that cancels the operation.
func (c *operationContext) Deadline() (deadline time.Time, ok bool) {
	if from, is := c.base.(*origin); is {
		deadline = from.deadline
	}
	if at := c.timeout(); !at.IsZero() && (deadline.IsZero() || at.Before(deadline)) {
		deadline = at
	}
	return deadline, !deadline.IsZero()
}

// timeout returns when Options.Timeout is over; zero: never. The body has started.
func (c *operationContext) timeout() time.Time {
	if c.engine.opts.Timeout <= 0 {
		return time.Time{}
	}
	return c.engine.clock.Wall(clock.Later(c.started, int64(c.engine.opts.Timeout)))
}

// timedOut returns the error of a body, joined with ErrTimeout after a timeout.
func (o *Operation) timedOut(err error) error {
	real := (*operationContext)(o).made()
	switch {
	case err == nil || real == nil || context.Cause(real) != ErrTimeout || guard.Is(err, ErrTimeout):
		return err
	case err == context.DeadlineExceeded:
		return ErrTimeout
	}
	return fmt.Errorf("%w: %w", ErrTimeout, err)
}

func (c *operationContext) Done() <-chan struct{} { return c.real().Done() }

func (c *operationContext) Err() error {
	if d := c.rare.Load(); d == askedOnly || c.runs(d) {
		return nil
	}
	return c.real().Err()
}

// runs reports whether there is no real context, and no need of one before the operation is cancelled or ends. The
// next call of Err then needs no lock. D are the details.
func (c *operationContext) runs(d *details) bool {
	if d != nil {
		if real := d.context.Load(); real != nil {
			return real == asked
		}
	}
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if (*Operation)(c).status()&StatusFinished != 0 || c.engine.opts.Timeout > 0 || c.made() != nil {
		return false
	}
	if d = c.rare.Load(); d == nil {
		c.rare.Store(askedOnly)
	} else if d != askedOnly {
		d.context.Store(asked)
	}
	return true
}

func (c *operationContext) Value(key any) any {
	switch key {
	case operationKey{}:
		return (*Operation)(c)
	case ctxkey.Parent{}:
		return c.owner.ID
	}
	real := c.made()
	if real == nil || real == ended {
		return context.WithoutCancel(c.base).Value(key) // context.Cause must not find the enqueuer's context
	}
	return real.Value(key)
}

func (c *operationContext) String() string { return "core.Operation(" + c.owner.ID.String() + ")" }

// OperationFrom returns the operation whose body got ctx, or a context from which ctx is
// made. It returns nil if there is none.
func OperationFrom(ctx context.Context) *Operation {
	if ctx == nil {
		panic(nilContext)
	}
	if c, ok := ctx.(*operationContext); ok {
		return (*Operation)(c)
	}
	o, _ := ctx.Value(operationKey{}).(*Operation)
	return o
}

type operationKey struct{}

// Parent is the id of the operation in whose context the item was enqueued; 0 if there is
// none. With [signals.CausedBy], it is the id of the operation that raised the signal.
func (o *Operation) Parent() OperationID {
	o = cmp.Or(o, nobody)
	if from, ok := o.base.(*origin); ok && from.parent != 0 {
		return from.parent
	}
	id, _ := o.base.Value(ctxkey.Parent{}).(OperationID)
	return id
}

// While [runtime/trace.IsEnabled], an operation is a task of the trace. Its type is the name of the
// coordinator. The body, Suspend, and waits for room are regions. Other waits are pairs of log
// entries: "waits" with the reason, and "waited".

// traced is the context of an Enqueue with the task of the operation.
type traced struct {
	context.Context
	holder context.Context // has the task as its only value
	task   *trace.Task
	waits  bool // a log entry says why it waits; guarded by engine.mu until it starts
}

func (t *traced) Value(key any) any {
	if v := t.holder.Value(key); v != nil {
		return v
	}
	return t.Context.Value(key)
}

// borrowed is a context with the values of another one, while the task is made.
type borrowed struct {
	context.Context
	from context.Context // nil afterwards, so that a task does not keep its parents
}

func (b *borrowed) Value(key any) any {
	if b.from == nil {
		return nil
	}
	return b.from.Value(key)
}

// traceOf starts the task of an operation, as a part of the task in ctx. It returns base with the task.
func (e *engine) traceOf(ctx, base context.Context) context.Context {
	b := &borrowed{context.Background(), ctx}
	holder, task := trace.NewTask(b, e.name)
	b.from = nil
	if from, ok := base.(*origin); ok {
		from.Context = &traced{from.Context, holder, task, false}
		return from
	}
	return &traced{base, holder, task, false}
}

// traced returns the task of the operation and its context, or nil.
func (o *Operation) traced() *traced {
	base := o.base
	if from, ok := base.(*origin); ok {
		base = from.Context
	}
	t, _ := base.(*traced)
	return t
}

// traceEnd ends the task of an operation that has ended or was not accepted.
func (o *Operation) traceEnd(how string) {
	if t := o.traced(); t != nil {
		if o.status() != StatusSucceeded {
			trace.Log(t.holder, "ended", how)
		}
		t.task.End()
	}
}

// traceBody runs the body of an operation as a region.
func (o *Operation) traceBody() error {
	ctx := (*operationContext)(o)
	if t := o.traced(); t != nil && t.waits {
		trace.Log(ctx, "waited", time.Duration(o.started-o.sched.Enqueued).String())
	}
	defer trace.StartRegion(ctx, o.engine.name+": body").End()
	return o.body.run(ctx)
}
