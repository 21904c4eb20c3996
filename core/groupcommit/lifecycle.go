package groupcommit

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

var _ core.Lifecycle = (*Committer[int])(nil)

// Complete ends the intake: Do returns [core.ErrClosed]. Items accepted before are
// committed.
func (c *Committer[T]) Complete() {
	c.end()
	c.runs.Complete()
}

// Flush waits until the items accepted so far are committed or have failed. If ctx ends
// first, it returns the cause; inside a commit, [core.ErrWouldDeadlock].
func (c *Committer[T]) Flush(ctx context.Context) error { return c.runs.Flush(ctx) }

// Drain is Complete, and then waits like Flush.
func (c *Committer[T]) Drain(ctx context.Context) error {
	if !c.Inside(ctx) {
		c.end()
	}
	return c.runs.Drain(ctx)
}

// Stop ends the intake and waits for the commit that runs. Items that wait for a commit
// fail with [core.ErrClosed].
func (c *Committer[T]) Stop(ctx context.Context) error {
	if !c.Inside(ctx) {
		c.end()
	}
	return c.runs.Stop(ctx)
}

// Close is Stop, and also ends the context of the commit that runs. Inside a commit it does
// not wait. It returns nil.
func (c *Committer[T]) Close() error {
	c.end()
	return c.runs.Close()
}

// Inside reports whether the caller is a commit of this committer.
func (c *Committer[T]) Inside(ctx context.Context) bool { return c.runs.Inside(ctx) }

func (c *Committer[T]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
