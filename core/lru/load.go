package lru

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core/flight"
	"github.com/ephemeralgo/ephemeral/core/internal/check"
)

// GetOrLoad returns the value of key, as Get does. If there is none, it loads and stores it,
// to expire after [Options.TTL] without an access.
//
// While load runs for a key, other callers that want the key wait for the same load. It runs
// on a new goroutine. Its context has the values of the first caller's context, but neither
// its deadline nor its cancellation. When the context of a caller ends, that caller leaves
// with its cause, and the load goes on for the others. When the last caller leaves, the
// load's context is cancelled with the cause of that caller, and its result is dropped; the
// next caller begins another load.
//
// An error of load goes to all callers that wait, and nothing is stored. If load panics or
// ends its goroutine, the error is a [core.PanicError]. If the key is set or removed, or the
// cache cleared, while load runs, the callers that wait get its value, but it is not stored.
//
// A load function may use the cache, with the context that it was given, for example to
// load other keys. If it asks for its own key, or waits for a load that waits for it,
// directly or through other keys and caches, it gets [core.ErrWouldDeadlock].
//
// GetOrLoad panics if load is nil.
func (c *LRU[K, V]) GetOrLoad(ctx context.Context, key K, load func(context.Context, K) (V, error)) (V, error) {
	check.Panic(load == nil, "lru: GetOrLoad needs a function")
	if value, ok := c.Get(key); ok {
		return value, nil
	}
	return c.obtain(ctx, key, false, load)
}

// Refresh loads the value of key, even if there is one, stores it and returns it. It expires
// after [Options.TTL] without an access. During the load other callers get the old value,
// which stays if the load fails. If a load of the key runs already, Refresh waits for that
// load. Refresh is not an access, and counts neither as a hit nor as a miss. In all else it
// is like GetOrLoad.
func (c *LRU[K, V]) Refresh(ctx context.Context, key K, load func(context.Context, K) (V, error)) (V, error) {
	check.Panic(load == nil, "lru: Refresh needs a function")
	return c.obtain(ctx, key, true, load)
}

// obtain waits for a load of a key: one that is under way, or a new one. If refresh is
// false, it may return a value that was stored since the caller looked.
func (c *LRU[K, V]) obtain(ctx context.Context, key K, refresh bool, load func(context.Context, K) (V, error)) (V, error) {
	if ctx.Err() != nil {
		return *new(V), context.Cause(ctx)
	}
	hash, s := c.locate(key)
	s.flights.Lock()
	if !refresh {
		if e, _ := c.getLocked(s, hash, key); e != nil {
			c.unlock(s)
			return e.value, nil
		}
	}
	call, first := s.flights.Join(ctx, key)
	if first {
		s.loads++
		go c.run(call, s, hash, key, load)
	}
	c.unlock(s)
	return s.flights.Wait(ctx, key, call)
}

// run loads a value and stores it, unless the load was overtaken.
func (c *LRU[K, V]) run(call *flight.Call[V], s *shard[K, V], hash uint64, key K, load func(context.Context, K) (V, error)) {
	flight.Run(func() (V, error) { return load(call.Context(), key) }, func(value V, err error) {
		defer call.Finish(value, err) // even if OnRemoved ends the goroutine
		e, now := c.entry(hash, key, value, c.sliding())
		s.flights.Lock()
		current := s.flights.Remove(key, call)
		switch {
		case err != nil:
			s.loadFailures++
		case current:
			s.put(e, now)
		}
		c.unlock(s)
	})
}
