package signals

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core/internal/ctxkey"
)

// causeKey is the key of the causedContext. The value of the nearest context counts.
type causeKey struct{}

// causedContext is a context made by CausedBy.
type causedContext struct {
	context.Context
	signal Signal
	link   *link
}

// CausedBy returns a context for items that are enqueued because of s, for example in a
// handler of s. The parent of their operations is the operation that raised s. The
// signals that these operations raise are caused by s, unless the body names another
// cause; see [Propagation]. Items that these operations enqueue are caused by s as well.
// Their parent is the operation that enqueued them.
func CausedBy(ctx context.Context, s Signal) context.Context {
	return &causedContext{ctx, s, s.linked()}
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
	case key == ctxkey.Parent{} && c.signal.Operation != 0:
		return c.signal.Operation
	}
	return c.Context.Value(key)
}
