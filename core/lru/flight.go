package lru

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// flight is a load that is under way, and those who wait for it.
type flight[V any] struct {
	wait
	ctx    context.Context
	cancel context.CancelCauseFunc

	waiters int // guarded by the shard's lock

	done  chan struct{} // closed when the rest is set
	value V
	err   error
}

// join returns the flight of a key, with one more to wait for it, and whether it has
// to be started.
func (s *shard[K, V]) join(ctx context.Context, key K) (f *flight[V], first bool) {
	f = s.flights[key]
	if f == nil {
		f = &flight[V]{done: make(chan struct{})}
		ctx = context.WithValue(context.WithoutCancel(ctx), loadKey{}, &f.wait)
		f.ctx, f.cancel = context.WithCancelCause(ctx)
		if s.flights == nil {
			s.flights = make(map[K]*flight[V])
		}
		if key == key { // a NaN could not be deleted
			s.flights[key] = f
		}
		s.loads++
		first = true
	}
	f.waiters++
	return f, first
}

// forget lets nobody else wait for the flight of a key, nor its result be stored.
func (s *shard[K, V]) forget(key K) {
	delete(s.flights, key)
	if len(s.flights) == 0 {
		s.flights = nil // maps do not shrink
	}
}

// fly loads a value.
func (c *LRU[K, V]) fly(f *flight[V], s *shard[K, V], hash uint64, key K, ttl time.Duration, load func(context.Context, K) (V, error)) {
	returned := false
	defer func() {
		if !returned {
			f.err = &core.PanicError{Value: recover(), Stack: debug.Stack()}
		}
		c.land(f, s, hash, key, ttl)
	}()
	value, err := load(f.ctx, key)
	if err == nil {
		f.value = value
	}
	f.err, returned = err, true
}

// land stores what was loaded, unless it was overtaken, and lets everybody know.
func (c *LRU[K, V]) land(f *flight[V], s *shard[K, V], hash uint64, key K, ttl time.Duration) {
	defer close(f.done) // whatever OnRemoved does
	e, now := c.entry(hash, key, f.value, ttl)
	var removed removals[K, V]
	s.mu.Lock()
	current := s.flights[key] == f
	if current {
		s.forget(key)
	}
	switch {
	case f.err != nil:
		s.loadFailures++
	case current:
		s.put(e, now, int64(c.opts.HotTTL), c.teller(&removed))
	}
	s.mu.Unlock()
	f.cancel(nil)
	c.tell(removed)
}

// await waits for a flight, as long as ctx lasts.
func (c *LRU[K, V]) await(ctx context.Context, f *flight[V], s *shard[K, V], key K) (V, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
	}
	select {
	case <-f.done: // both at once
		return f.value, f.err
	default:
	}
	cause := context.Cause(ctx)
	c.leave(f, s, key, cause)
	var none V
	return none, cause
}

// leave stops waiting. The last to leave cancels the load.
func (c *LRU[K, V]) leave(f *flight[V], s *shard[K, V], key K, cause error) {
	s.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	if last && s.flights[key] == f {
		s.forget(key)
	}
	s.mu.Unlock()
	if last {
		f.cancel(cause)
	}
}
