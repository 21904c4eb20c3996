package slidingcache

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
)

// loading is a load that waits for its turn, runs, or has ended. It is an operation of the
// cache's coordinator.
type loading[K comparable, V any] struct {
	shard     *shard[K, V]
	key       K
	text      string
	refreshes bool // it runs in the background, while there is a value
	flight    *flight.Load
	future    *core.Future[struct{}]
	operation *core.Operation // once it runs

	// Guarded by the shard's lock.
	waiters int
	claimed bool // by run, or by abandon

	landed  atomic.Bool // the rest is set
	current bool        // until it landed, the key was neither set nor removed
	found   status      // fresh: value; absent: err says that there is none; none: err
	value   V
	life    time.Duration // of the value, if the load function has said so
	err     error
}

// open makes the load of a key, an operation of that lane. The lock is held: the
// coordinator calls no foreign code, and the operation needs the lock to begin.
func (s *shard[K, V]) open(ctx context.Context, lane *lane[K, V], key K, text string) (f *loading[K, V], err error) {
	f = &loading[K, V]{shard: s, key: key, text: text, flight: flight.NewLoad(ctx)}
	if f.future, err = lane.Submit(f.flight, f); err != nil {
		return nil, err
	}
	s.loads.Put(key, f)
	return f, nil
}

// forget makes the load of a key, if there is one, invisible to other callers. Its result
// will not be stored. If no caller waits for it, it is returned for drop. The lock is held.
func (s *shard[K, V]) forget(key K) (unwanted *loading[K, V]) {
	f := s.loads.Get(key)
	if f == nil {
		return nil
	}
	s.loads.Delete(key)
	if f.waiters > 0 {
		return nil
	}
	f.abandon()
	return f
}

// abandon prevents the begin of a load that has not begun. No caller waits for the load, and
// it will be cancelled. The lock is held.
func (f *loading[K, V]) abandon() {
	if !f.claimed && f.refreshes {
		f.shard.counts.refreshFailures++
	}
	f.claimed = true
}

// drop cancels a load that no caller waits for. It may be nil.
func (c *Cache[K, V]) drop(f *loading[K, V]) {
	if f != nil {
		c.loads.Cancel(f.future.ID(), core.ErrCancelled)
	}
}

// leave is called when a caller stops waiting. The last caller cancels the load, unless the
// load is a refresh that goes on in the background.
func (c *Cache[K, V]) leave(f *loading[K, V], cause error) {
	s := f.shard
	s.mu.Lock()
	f.waiters--
	last := f.waiters == 0 && !f.landed.Load() && !(f.refreshes && s.loads.Get(f.key) == f)
	if last {
		s.loads.Remove(f.key, f)
		f.abandon()
	}
	s.mu.Unlock()
	if last {
		c.loads.Cancel(f.future.ID(), cause)
	}
}

// run is the body of the operations.
func (c *Cache[K, V]) run(ctx context.Context, f *loading[K, V]) (none struct{}, err error) {
	f.shard.mu.Lock()
	abandoned := f.claimed
	f.claimed = true
	f.shard.mu.Unlock()
	if abandoned { // and will be cancelled
		<-ctx.Done()
		return none, context.Cause(ctx)
	}
	f.operation = core.OperationFrom(ctx)
	begins, ends := SignalLoading, SignalLoaded
	if f.refreshes {
		begins, ends = SignalRefreshing, SignalRefreshed
	}
	returned := false
	flight.Run(func() (value V, err error) {
		f.raise(begins)
		value, f.life, err = c.loader(ctx, f.key)
		switch {
		case err == nil:
			f.found = fresh
		case c.opts.NotFound(err):
			f.found = absent
		}
		returned = true
		return value, err
	}, func(value V, err error) {
		f.value, f.err = value, err
		failed := f.found == nothing && ctx.Err() == nil // and was not just cancelled
		c.land(f)
		c.raiseEvictions()
		if p, _ := err.(*core.PanicError); !returned && p.Value != nil {
			f.raise(core.SignalPanicked)
		}
		switch {
		case f.found == fresh:
			f.raise(ends)
		case f.found == absent:
			f.raise(SignalNotFound)
		case failed:
			LoadFailed.Raise(f.operation, f.text, err)
		}
	})
	if f.found == nothing {
		err = f.err
	}
	return none, err
}

// land stores the result of a load, unless the load was overtaken.
func (c *Cache[K, V]) land(f *loading[K, V]) {
	s := f.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	f.current = s.loads.Remove(f.key, f)
	switch {
	case f.found == nothing:
		if f.refreshes {
			s.counts.refreshFailures++
		}
	case !f.current:
		s.counts.discarded++
	case f.found == fresh:
		c.put(f.key, f.value, f.life)
	case c.times.negative > 0:
		c.store.SetWithLife(f.key, record[V]{details: &details{absence: f.err}}, c.opts.NegativeTTL)
	default:
		c.store.Remove(f.key)
	}
	f.landed.Store(true)
}
