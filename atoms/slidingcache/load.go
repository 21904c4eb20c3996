package slidingcache

import (
	"cmp"
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// miss gets a value that is not there.
func (c *Cache[K, V]) miss(ctx context.Context, key K) (V, error) {
	var (
		none   V
		text   = c.text(key)
		s      = c.shard(key)
		within = loadOf(ctx)
		nested = within != nil && within.cache == any(c)
	)
	s.mu.Lock()
	old, v := c.look(key)
	if v == fresh || v == absent { // stored since
		s.mu.Unlock()
		if v == absent {
			c.recount(0, -1, 1)
			return none, old.fate.absence
		}
		c.recount(1, -1, 0)
		return old.value, nil
	}
	if s.closed {
		s.mu.Unlock()
		return none, core.ErrClosed
	}
	f := s.flights[key]
	var pending *flight[K, V]
	if f != nil && f.refreshes && !f.started { // it would wait for its turn behind all loads
		pending, f = s.forget(key), nil
	}
	shared := f != nil
	var err error
	if !shared {
		f = s.open(c, ctx, key, text)
		if !nested {
			err = c.submit(f)
		}
	} else {
		s.counts.shared++
	}
	f.waiters++
	s.mu.Unlock()
	defer func() {
		if !f.landed() {
			c.leave(f, cmp.Or(err, core.ErrCancelled)) // also if a handler has ended the goroutine
		}
	}()

	c.drop(pending)
	if err != nil {
		return none, err
	}
	c.tell()
	if shared {
		c.sample(SignalShared, key)
	}
	if err = c.await(ctx, f, within); err != nil {
		return none, err
	}
	if f.found == nothing && v == outdated && c.serves(f, old.fate) {
		c.opts.Sink.RaiseKey(SignalStale, text)
		return old.value, nil
	}
	return f.value, f.err
}

// serves reports whether, after a flight that failed, an expired value is served. It
// is not if meanwhile the key was set or invalidated, or the cache cleared or closed.
func (c *Cache[K, V]) serves(f *flight[K, V], old *fate) bool {
	if !f.current || c.spans.judge(old, c.clock.now()) != outdated {
		return false
	}
	f.shard.mu.Lock()
	defer f.shard.mu.Unlock()
	f.shard.counts.stale++
	return true
}

// await waits until a flight has landed. When ctx ends first, or the flight will
// never land, or the wait could never end, it says why.
func (c *Cache[K, V]) await(ctx context.Context, f *flight[K, V], within *load) error {
	if !within.begin(f.load) {
		return core.ErrWouldDeadlock
	}
	defer within.end(f.load)
	within.help(ctx, f.load, false)
	if err := c.hold(ctx, f, within); !f.landed() {
		return err
	}
	return nil
}

// hold waits until a flight has landed, or its operation is cancelled, or ctx ends.
func (c *Cache[K, V]) hold(ctx context.Context, f *flight[K, V], within *load) error {
	// The coordinator sees more circles; but to it, what is part of one of its
	// operations waits for itself, and it does not know what runs elsewhere.
	if f.future != nil && !within.partOf(c) {
		_, err := f.future.Wait(ctx)
		for err == core.ErrWouldDeadlock && !f.landed() && within.help(ctx, f.load, true) {
			_, err = f.future.Wait(ctx)
		}
		if err != errElsewhere {
			return err
		}
	}
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refresh begins to load a value that is there, and due, unless it has left since.
func (c *Cache[K, V]) refresh(ctx context.Context, key K, due *fate) {
	text, s := c.text(key), c.shard(key)
	s.mu.Lock()
	now, _ := c.look(key)
	if now.fate == due && s.flights[key] == nil && !s.closed {
		f := s.open(c, ctx, key, text)
		f.refreshes, f.kept = true, true
		if c.submit(f) == nil {
			s.counts.refreshes++
		}
	}
	s.mu.Unlock()
	c.tell()
}
