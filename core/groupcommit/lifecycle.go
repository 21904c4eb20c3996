package groupcommit

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

var _ core.Inspector = (*Committer[int])(nil)

// Complete ends the intake: Do returns [core.ErrClosed]. Items accepted before are
// committed.
func (c *Committer[T]) Complete() {
	c.end()
	c.Control.Complete()
}

// Drain is Complete, and then waits like Flush.
func (c *Committer[T]) Drain(ctx context.Context) error {
	if !c.Inside(ctx) {
		c.end()
	}
	return c.Control.Drain(ctx)
}

// Stop ends the intake and waits for the commit that runs. Items that wait for a commit
// fail with [core.ErrClosed].
func (c *Committer[T]) Stop(ctx context.Context) error {
	if !c.Inside(ctx) {
		c.end()
	}
	return c.Control.Stop(ctx)
}

// Close is Stop, and also ends the context of the commit that runs. Inside a commit it does
// not wait. It returns nil.
func (c *Committer[T]) Close() error {
	c.end()
	return c.Control.Close()
}

func (c *Committer[T]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
