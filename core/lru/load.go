package lru

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// GetOrLoad returns the value of key, as Get does, even if ctx has ended, or else
// loads and stores it, to expire after [Options.TTL] without an access.
//
// While load runs for a key, others who want the key wait for the same load. It
// runs on a goroutine of its own, with a context that has the values of the first
// caller's, but neither its deadline nor its cancellation: who waits leaves with
// the cause of the own context when that ends, and the load goes on for the others.
// When nobody waits any more, the load's context is cancelled, with the cause of the
// last one's, and its result is dropped; who comes then begins another load.
//
// An error of load goes to all who wait, and nothing is stored. If load panics or
// ends its goroutine, it is a [core.PanicError]. If the key is set or invalidated,
// or the cache cleared, while load runs, those who wait get its value, but it is
// not stored.
//
// A load function may use the cache, with the context that it was given, also to
// load other keys. If it asks for its own key, or waits for a load that waits for
// it, over any number of keys and caches, GetOrLoad returns
// [core.ErrWouldDeadlock].
//
// GetOrLoad panics if load is nil.
func (c *LRU[K, V]) GetOrLoad(ctx context.Context, key K, load func(ctx context.Context, key K) (V, error)) (V, error) {
	return c.GetOrLoadFor(ctx, key, 0, load)
}

// GetOrLoadFor is GetOrLoad for a value that expires after ttl without an access; 0
// means [Options.TTL], negative never. If others wait for the same load, the ttl of
// the first counts.
func (c *LRU[K, V]) GetOrLoadFor(ctx context.Context, key K, ttl time.Duration, load func(ctx context.Context, key K) (V, error)) (V, error) {
	if load == nil {
		panic("lru: GetOrLoad needs a function")
	}
	hash, s := c.locate(key)
	if e := c.get(s, hash, key); e != nil {
		return e.value, nil
	}
	var none V
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	within := loadOf(ctx)

	var (
		removed removals[K, V]
		f       *flight[V]
		first   bool
	)
	s.mu.Lock()
	e, _ := c.getLocked(s, hash, key, c.teller(&removed)) // stored since
	if e == nil {
		f, first = s.join(ctx, key)
	}
	s.mu.Unlock()
	if first {
		go c.fly(f, s, hash, key, ttl, load)
	}
	c.tell(removed)
	if e != nil {
		return e.value, nil
	}
	if within != nil {
		if !within.begin(&f.wait) {
			c.leave(f, s, key, core.ErrWouldDeadlock)
			return none, core.ErrWouldDeadlock
		}
		defer within.end(&f.wait)
	}
	return c.await(ctx, f, s, key)
}
