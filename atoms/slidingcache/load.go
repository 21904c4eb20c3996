package slidingcache

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
)

// Refresh loads the value of key, even if it has not expired, stores it and returns it. Until
// then other callers get the old value. If the load fails, the old value stays, and Refresh
// returns the error, even with [Options.StaleOnError]. If a load of the key runs already,
// Refresh waits for that load. Refresh counts neither as a hit nor as a miss. In all else it
// is like Get.
func (c *Cache[K, V]) Refresh(ctx context.Context, key K) (V, error) { return c.obtain(ctx, key, true) }

// obtain waits for a load of a key. It begins one if none is under way. If again is false, it
// may also return a value that was stored since the caller looked.
func (c *Cache[K, V]) obtain(ctx context.Context, key K, again bool) (V, error) {
	text, s, lane := c.text(key), c.shard(key), c.loads
	if flight.From(ctx) != nil {
		lane = c.needed
	}
	for first := !again; ; first = false {
		if ctx.Err() != nil {
			return *new(V), context.Cause(ctx)
		}
		s.mu.Lock()
		old, found := c.peek(key)
		if !again && (found == fresh || found == absent) {
			s.mu.Unlock()
			switch {
			case !first:
			case found == fresh:
				c.recount(1, -1, 0)
			default:
				c.recount(0, -1, 1)
			}
			return old.value, old.err()
		}
		f, shared, unwanted, err := s.join(ctx, lane, key, text)
		if shared = shared && first; shared {
			s.counts.shared++
		}
		s.mu.Unlock()
		c.drop(unwanted)
		if err == nil {
			err = c.await(ctx, f, shared)
		}
		switch {
		case err != nil:
			return *new(V), err
		case f.found != nothing:
		case f.refreshes:
			continue // a refresh failed: the caller waits for a load
		case !again && found == outdated && c.serves(f, old.details):
			c.opts.Sink.RaiseKey(SignalStale, text)
			return old.value, nil
		}
		return f.value, f.err
	}
}

// join returns the load of a key, with one more waiting caller, and whether it was under way
// before. The lock is held.
func (s *shard[K, V]) join(ctx context.Context, lane *core.ResultCoordinator[*loading[K, V], struct{}], key K, text string) (f *loading[K, V], shared bool, unwanted *loading[K, V], err error) {
	if s.closed {
		return nil, false, nil, core.ErrClosed
	}
	f = s.loads.Get(key)
	if f != nil && f.refreshes && !f.claimed { // loads go before refreshes
		unwanted, f = s.forget(key), nil
	}
	if shared = f != nil; !shared {
		if f, err = s.open(ctx, lane, key, text); err != nil {
			return nil, false, unwanted, err
		}
	}
	f.waiters++
	return f, shared, unwanted, nil
}

// await waits until a load has landed. If the caller is a load itself, it gives up its slot
// meanwhile. If ctx ends first, the load cannot land or the wait cannot end, await leaves the
// load and returns the reason.
func (c *Cache[K, V]) await(ctx context.Context, f *loading[K, V], shared bool) error {
	wait := func(ctx context.Context) (err error) {
		err = core.ErrCancelled // if a handler, or a method of ctx, ends the goroutine
		defer func() {
			if err != nil {
				c.leave(f, err) // before the caller gets its slot back: f may have that slot
			}
		}()
		if shared {
			c.sample(SignalShared, f.key)
		}
		return f.flight.Await(ctx, func() error {
			if _, err := f.future.Wait(ctx); !f.landed.Load() {
				return err
			}
			return nil
		})
	}
	if flight.From(ctx) == nil {
		return wait(ctx)
	}
	return core.OperationFrom(ctx).Suspend(ctx, fmt.Sprintf("the load of key %q of %q", f.text, c.opts.Name), wait)
}

// serves reports whether an expired value is returned after a load failed. It returns false if
// the key was set or removed, or the cache cleared or closed, since the load began.
func (c *Cache[K, V]) serves(f *loading[K, V], old *details) bool {
	if !f.current || c.times.check(old, c.now(), 0) != outdated {
		return false
	}
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	f.shard.counts.stale++
	return true
}

// refresh begins to load a value that is due for a refresh, unless it was removed since.
func (c *Cache[K, V]) refresh(ctx context.Context, key K, due *details) {
	text, s := c.text(key), c.shard(key)
	s.mu.Lock()
	now, _ := c.peek(key)
	if now.details == due && s.loads.Get(key) == nil && !s.closed {
		if f, err := s.open(ctx, c.late, key, text); err == nil {
			f.refreshes = true
			s.counts.refreshes++
		}
	}
	s.mu.Unlock()
}
