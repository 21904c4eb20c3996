package slidingcache

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/ephemeralgo/ephemeral/core"
)

// flight is a load that is to run, runs, or has ended, and those who wait for it.
// As a rule it is an operation of the coordinator of loads. One that another load
// wants before that has a turn is run by that other load.
type flight[K comparable, V any] struct {
	shard *shard[K, V]
	key   K
	text  string
	load  *load
	self  helper

	refreshes bool // what is stored

	// Guarded by the shard's lock, as long as it has not landed.
	future  *core.Future[struct{}]  // of the operation; nil: it is part of another one
	cancel  context.CancelCauseFunc // nil: by the coordinator only
	waiters int
	kept    bool // goes on when nobody waits
	started bool
	moved   chan struct{} // nil, or closed when the coordinator knows that it runs elsewhere
	current bool          // nobody wanted anything else of the key before it landed

	done  chan struct{} // closed when the rest is set
	value V
	err   error
	found verdict // fresh: value; absent: err says that there is none; nothing: err
}

// open makes the flight of a key. The lock is held.
func (s *shard[K, V]) open(c *Cache[K, V], ctx context.Context, key K, text string) *flight[K, V] {
	f := &flight[K, V]{shard: s, key: key, text: text, load: &load{caller: ctx, cache: c, root: c, limit: c.opts.MaxConcurrency}, done: make(chan struct{})}
	f.self = f
	f.load.pending.Store(&f.self)
	if key == key { // a NaN could not be deleted
		if s.flights == nil {
			s.flights = make(map[K]*flight[K, V])
		}
		s.flights[key] = f
	}
	return f
}

// submit makes a flight an operation. The lock is held: the coordinator calls
// nothing foreign.
func (c *Cache[K, V]) submit(f *flight[K, V]) (err error) {
	loads := c.loads
	if f.refreshes {
		loads = c.late
	}
	f.future, err = loads.Submit(f.load, f)
	if err != nil {
		f.shard.close(f.key)
	}
	return err
}

// close lets nobody else wait for the flight of a key, nor its result be stored. The
// lock is held.
func (s *shard[K, V]) close(key K) {
	delete(s.flights, key)
	if len(s.flights) == 0 {
		s.flights = nil // maps do not shrink
	}
}

// forget does the same, and returns a flight that nobody wants any more, for drop.
func (s *shard[K, V]) forget(key K) (unwanted *flight[K, V]) {
	f := s.flights[key]
	if f == nil {
		return nil
	}
	s.close(key)
	f.kept = false
	if f.waiters > 0 {
		return nil
	}
	f.abandon()
	return f
}

// abandon lets a flight that has not begun never begin. The lock is held, nobody
// wants it any more, and it will be cancelled.
func (f *flight[K, V]) abandon() {
	if f.claim() && f.refreshes {
		f.shard.counts.refreshFailures++
	}
}

// drop cancels a flight that nobody wants. It may be nil.
func (c *Cache[K, V]) drop(f *flight[K, V]) {
	if f != nil {
		c.cancel(f, core.ErrCancelled)
	}
}

// cancel cancels a flight. No lock is held.
func (c *Cache[K, V]) cancel(f *flight[K, V], cause error) {
	f.shard.mu.Lock()
	cancel, future := f.cancel, f.future
	f.shard.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
	if future != nil {
		c.loads.Cancel(future.ID(), cause)
	}
}

// leave stops waiting. The last to leave cancels the load.
func (c *Cache[K, V]) leave(f *flight[K, V], cause error) {
	s := f.shard
	s.mu.Lock()
	f.waiters--
	last := f.waiters == 0 && !f.kept
	if last {
		if s.flights[f.key] == f {
			s.close(f.key)
		}
		f.abandon()
	}
	s.mu.Unlock()
	if last {
		c.cancel(f, cause)
	}
}

// claim reports whether it is for the caller to run the flight. The lock is held.
func (f *flight[K, V]) claim() bool {
	mine := !f.started
	f.started = true
	if f.moved == nil {
		f.load.pending.Store(nil)
	}
	return mine
}

// landed reports whether the result is set.
func (f *flight[K, V]) landed() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// run is the body of the operations.
func (c *Cache[K, V]) run(ctx context.Context, f *flight[K, V]) (struct{}, error) {
	if c.closing.Err() != nil { // it got the place of one that Close has cancelled
		<-ctx.Done()
		return struct{}{}, context.Cause(ctx)
	}
	f.shard.mu.Lock()
	mine := f.claim()
	f.shard.mu.Unlock()
	if !mine { // it is part of another operation, or abandoned, and this one about to be cancelled
		<-ctx.Done()
		return struct{}{}, context.Cause(ctx)
	}
	f.load.raiser = core.OperationFrom(ctx)
	f.load.placed.Store(true)
	c.fly(ctx, f)
	if f.found == nothing {
		return struct{}{}, f.err
	}
	return struct{}{}, nil
}

// errElsewhere is why an operation is cancelled that had not begun.
var errElsewhere = errors.New("slidingcache: another load needs the value and loads it")

// help runs a flight that waits for its turn, in the place of a load of the same
// cache, if there is one, for a load within that waits for on, with ctx. If somebody
// else does, it waits until the coordinator knows, and reports whether it does.
func (f *flight[K, V]) help(ctx context.Context, within, on, place *load) bool {
	s, operation := f.shard, core.OperationFrom(ctx)
	s.mu.Lock()
	if !f.started && f.future != nil {
		f.moved = make(chan struct{})
	}
	mine := f.claim()
	var own context.Context
	if mine {
		own, f.cancel = context.WithCancelCause(part{f.load, operation})
		if f.load != on { // which counts within already
			f.waiters++
		}
		s.counts.nested++
	}
	s.mu.Unlock()
	if mine {
		f.load.cache.(*Cache[K, V]).runHere(ctx, own, f, within, place)
	} else if f.moved != nil {
		select {
		case <-f.moved:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// withdraw ends the operation of a flight that waited for its turn, as it runs now as
// part of another one.
func (c *Cache[K, V]) withdraw(f *flight[K, V]) {
	defer close(f.moved)
	defer f.load.pending.Store(nil)
	c.loads.Cancel(f.future.ID(), errElsewhere)
}

// runHere runs a flight in the place of another load, as part of its operation, for a
// load within, with whose context ctx it was asked for.
func (c *Cache[K, V]) runHere(ctx, own context.Context, f *flight[K, V], within, place *load) {
	f.load.root = within.root
	if !within.begin(f.load) {
		panic("slidingcache: a load that has not begun waits for another")
	}
	defer within.end(f.load)
	closed := context.AfterFunc(c.closing, func() { f.cancel(core.ErrClosed) })
	defer closed()
	left := context.AfterFunc(ctx, func() { c.leave(f, context.Cause(ctx)) })
	defer left()
	defer f.cancel(context.Canceled) // what outlives the load does not run on
	f.load.raiser = c.opts.Sink
	if place != nil {
		f.load.raiser = place.raiser
	}
	c.fly(own, f)
}

// fly loads a value, stores it, and lets everybody know.
func (c *Cache[K, V]) fly(ctx context.Context, f *flight[K, V]) {
	begins, ends := SignalLoading, SignalLoaded
	if f.refreshes {
		begins, ends = SignalRefreshing, SignalRefreshed
	}
	returned := false
	defer func() {
		var panicked any
		if !returned {
			panicked = recover()
			f.found, f.err = nothing, &core.PanicError{Value: panicked, Stack: debug.Stack()}
		}
		failed := f.found == nothing && ctx.Err() == nil // and was not just cancelled
		c.land(f)
		c.tell()
		if panicked != nil {
			f.raise(core.SignalPanic)
		}
		switch {
		case f.found == fresh:
			f.raise(ends)
		case f.found == absent:
			f.raise(SignalNotFound)
		case failed:
			LoadFailed.Raise(f.load.raiser, f.text, f.err)
		}
	}()
	if f.moved != nil {
		c.withdraw(f)
	}
	f.raise(begins)
	value, err := c.load(ctx, f.key)
	switch {
	case err == nil:
		f.found, f.value = fresh, value
	case c.opts.NotFound(err):
		f.found = absent
	}
	f.err, returned = err, true
}

// land stores what was loaded, unless it was overtaken.
func (c *Cache[K, V]) land(f *flight[K, V]) {
	f.load.over.Store(true)
	s := f.shard
	s.mu.Lock()
	defer close(f.done)
	defer s.mu.Unlock()
	f.current = s.flights[f.key] == f
	if f.current {
		s.close(f.key)
	}
	switch {
	case f.found == nothing:
		if f.refreshes {
			s.counts.refreshFailures++
		}
	case !f.current:
		s.counts.discarded++
	case f.found == fresh:
		c.put(f.key, f.value)
	case c.spans.negative > 0:
		r := record[V]{fate: c.spans.absence(c.clock.now(), f.err)}
		c.store.SetFor(f.key, r, c.opts.NegativeTTL)
	default:
		c.store.Invalidate(f.key)
	}
}
