package slidingcache

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
	"github.com/ephemeralgo/ephemeral/core/guard"
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
	claimed bool // claimed by run or by abandon

	landed  atomic.Bool // the fields below are set
	current bool        // the key was neither set nor removed before the load landed
	found   status      // fresh: there is a value; absent: err says that the key has no value; nothing: the load failed with err
	value   V
	life    time.Duration // life of the value, if the load function has returned one
	err     error
}

// open makes the load of a key: an operation in that lane. The lock is held. This is safe:
// the coordinator calls no foreign code, and the operation cannot begin without the lock.
func (s *shard[K, V]) open(ctx context.Context, lane *core.ResultCoordinator[*loading[K, V], struct{}], key K, text string) (f *loading[K, V], err error) {
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

// drop cancels a load for which no caller waits. F may be nil.
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
	if abandoned { // the load will be cancelled
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
		case guard.Is(err, ErrNotFound):
			f.found = absent
		}
		returned = true
		return value, err
	}, func(value V, err error) {
		f.value, f.err = value, err
		failed := f.found == nothing && ctx.Err() == nil // a cancellation is no failure
		c.land(f)
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
