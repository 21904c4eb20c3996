package flight

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Group runs one load of a key at a time. The zero value is ready to use.
//
// A program that stores nothing needs only Do. A cache uses the other methods, and guards
// its values with the lock of the group as well. So it decides at one moment whether there
// is a value, a load to wait for, or a load to begin. At the end of a load it decides
// whether to store the result.
type Group[K comparable, V any] struct {
	sync.Mutex
	Table[K, Call[V]] // guarded by the lock
}

// A Call is a load of a [Group], and the callers that wait for it. If it is overtaken, see
// [Table.Delete], or abandoned by all of its callers, it leaves the table.
type Call[V any] struct {
	ctx     context.Context
	load    Load
	cancel  context.CancelCauseFunc
	waiters int           // guarded by the lock of the group
	done    chan struct{} // closed when the fields below are set
	value   V
	err     error
}

// Context is the context of the load function. It has the values of the first caller's
// context. It is cancelled when no caller waits any more, and when the load has landed.
func (c *Call[V]) Context() context.Context { return c.ctx }

// Do returns what load returns for the key, or has returned to another caller that waits
// for the same load. Load runs on a new goroutine. If ctx ends, Do returns the cause of
// ctx, and the load goes on for other callers. If there are no other callers, the load is
// cancelled with that cause. If load panics or ends its goroutine, the error is a
// [core.PanicError].
//
// Do panics if the key cannot be hashed, as a map does.
//
// If the caller is a load itself, and the load of the key waits for the caller, directly or
// through other loads, groups and caches, the error is [core.ErrWouldDeadlock].
func (g *Group[K, V]) Do(ctx context.Context, key K, load func(ctx context.Context, key K) (V, error)) (V, error) {
	if ctx.Err() != nil {
		return *new(V), context.Cause(ctx)
	}
	c, first := g.joinLocked(ctx, key)
	if first {
		go Run(func() (V, error) { return load(c.ctx, key) }, func(value V, err error) {
			g.Lock()
			g.Remove(key, c)
			g.Unlock()
			c.Finish(value, err)
		})
	}
	return g.Wait(ctx, key, c)
}

// joinLocked is Join, and takes the lock. A key that cannot be hashed panics.
func (g *Group[K, V]) joinLocked(ctx context.Context, key K) (*Call[V], bool) {
	g.Lock()
	defer g.Unlock()
	return g.Join(ctx, key)
}

// Join returns the call of a key; the caller waits for it with Wait. For the first caller
// the call is new. That caller has to start a goroutine, which loads the value with the
// call's context, and then calls Remove and Finish. The lock is held.
func (g *Group[K, V]) Join(ctx context.Context, key K) (c *Call[V], first bool) {
	c = g.Get(key)
	if first = c == nil; first {
		c = &Call[V]{load: Load{caller: ctx}, done: make(chan struct{})}
		c.ctx, c.cancel = context.WithCancelCause(&c.load)
		g.Put(key, c)
	}
	c.waiters++
	return c, first
}

// Finish gives the result of a call to the callers that wait for it.
func (c *Call[V]) Finish(value V, err error) {
	c.value, c.err = value, err
	c.cancel(nil)
	close(c.done)
}

// Wait waits for the result of a call and returns it. If ctx ends first, it returns the
// cause of ctx. If the wait could never end, it returns [core.ErrWouldDeadlock]. The lock
// is not held.
func (g *Group[K, V]) Wait(ctx context.Context, key K, c *Call[V]) (V, error) {
	err := c.load.Await(ctx, func() error {
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err == nil {
		return c.value, c.err
	}
	g.leave(key, c, err)
	return *new(V), err
}

// leave counts a caller that does not wait any more. The last one cancels the load.
func (g *Group[K, V]) leave(key K, c *Call[V], cause error) {
	g.Lock()
	c.waiters--
	last := c.waiters == 0
	if last {
		g.Remove(key, c)
	}
	g.Unlock()
	if last {
		c.cancel(cause)
	}
}

// Run calls load, and then land with the result. With an error, the result is the zero
// value. If load panics or ends its goroutine, the error is a [core.PanicError]. Run
// recovers the panic. If load ends the goroutine, land is called before that.
func Run[V any](load func() (V, error), land func(value V, err error)) {
	var (
		value    V
		err      error
		returned bool
	)
	defer func() {
		if !returned {
			err = &core.PanicError{Value: recover(), Stack: debug.Stack()}
		}
		if err != nil {
			value = *new(V)
		}
		land(value, err)
	}()
	value, err = load()
	returned = true
}
