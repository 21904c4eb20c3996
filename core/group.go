// This file decides which items of a coordinator belong together.

package core

import (
	"cmp"
	"context"
)

// GroupOptions configure a [Group]. The zero value is the default.
type GroupOptions struct {
	// StopOnError means: when an operation fails, the others of the group are cancelled
	// with its error as the cause.
	StopOnError bool
}

// A Group is a set of items of a coordinator that other code uses as well. Wait waits for
// all of them, and they are cancelled together. Make one with [Coordinator.Group], and
// call Wait. All methods are safe for concurrent use.
type Group[T any] struct {
	c *Coordinator[T]
	group
}

// groupTask is a task of a group.
type groupTask[T any] struct {
	task[T, struct{}]
	group *group
}

func (t *groupTask[T]) of() *group { return t.group }

// Group returns an empty group. When ctx ends, the group takes no more items, and its
// operations are cancelled with the cause of ctx.
func (c *Coordinator[T]) Group(ctx context.Context, opts GroupOptions) *Group[T] {
	OperationFrom(ctx) // says what is wrong with a nil context
	g := &Group[T]{c: c, group: group{engine: c.made(), parent: ctx, stops: opts.StopOnError}}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.after = context.AfterFunc(g.ctx, g.abort)
	return g
}

// Enqueue is [Coordinator.Enqueue] with two more errors. After the group's context has
// ended, or StopOnError has cancelled the group, it returns the cause, also if it waits for room. After Wait has
// returned, it returns [ErrClosed]. An item that it does not accept is not part of the group, so Wait does not
// return that error. The operation has the values of ctx, and the deadline of the group's
// context.
func (g *Group[T]) Enqueue(ctx context.Context, item T) (OperationID, error) {
	o, err := g.enqueue(ctx, item)
	if err != nil {
		return 0, err
	}
	return o.owner.ID, nil
}

func (g *Group[T]) enqueue(ctx context.Context, item T) (*Operation, error) {
	t := &groupTask[T]{task[T, struct{}]{in: item}, &g.group}
	t.Operation.body, t.Operation.sched.Flags = t, grouped
	if g.c.key != nil {
		t.Operation.owner.Key = g.c.key(item)
	}
	deadline, _ := g.ctx.Deadline()
	t.Operation.base = baseOf(ctx, deadline)
	if err := g.enter(); err != nil {
		return nil, err
	}
	if err := g.engine.enqueue(ctx, &t.Operation, g.c.door, true); err != nil {
		g.engine.mu.Lock()
		g.leave()
		g.engine.unlock()
		return nil, err
	}
	if g.ctx.Err() != nil {
		g.abort() // the first abort may have come before this item was counted
	}
	return &t.Operation, nil
}

// Wait waits until all operations of the group have ended, and ends the group. It returns
// nil, or the errors joined as by [ForEach]. If the group's context has ended before, its
// cause is among them. The error of a cancelled operation is left out if it says no more
// than that the operation was cancelled. A body may wait for a group that it has made with its own context:
// it is suspended meanwhile, or gets [ErrWouldDeadlock]; see [Coordinator.Do].
func (g *Group[T]) Wait() error {
	by, foreign := g.engine.caller(g.parent)
	if foreign {
		return ErrWouldDeadlock
	}
	if err := g.wait(by); err != nil {
		return err
	}
	reason := cmp.Or(context.Cause(g.ctx), context.Canceled)
	g.end()
	return g.err(reason)
}
