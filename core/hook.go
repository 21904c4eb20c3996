package core

import "sync/atomic"

// hook is a user's function that is called for events, and the barrier its
// cancellation waits at.
type hook[E any] struct {
	pattern   pattern // which events, where that is a matter of a name
	fn        func(E)
	running   atomic.Int64
	cancelled atomic.Bool
	released  atomic.Bool
	idle      chan struct{} // closed by the last call that ends after cancel
}

func newHook[E any](p pattern, fn func(E)) *hook[E] {
	return &hook[E]{pattern: p, fn: fn, idle: make(chan struct{})}
}

// enter reports whether fn may be called; leave must follow either way.
func (h *hook[E]) enter() bool {
	h.running.Add(1)
	return !h.cancelled.Load()
}

func (h *hook[E]) leave() {
	if h.running.Add(-1) == 0 && h.cancelled.Load() && h.released.CompareAndSwap(false, true) {
		close(h.idle)
	}
}

// cancel ends the calls: none starts after it returns, and those that run have
// ended, unless it is called from inside a delivery, which cannot wait for itself.
func (h *hook[E]) cancel() {
	h.cancelled.Store(true)
	if h.running.Load() == 0 || deliveries(1) > 0 {
		return
	}
	<-h.idle
}

// deliver calls every hook with e, in order, on this goroutine. A panic ends
// only the call it happens in and is counted.
func deliver[E any](hooks []*hook[E], e E, panics *atomic.Uint64) {
	for i := 0; i < len(hooks); {
		i = deliverSome(hooks, i, e, panics)
	}
}

// deliverSome calls the hooks from i on and returns where to go on after a panic.
// There is one deferred frame for all of them, not one for each. Its frames on
// the stack tell how deep deliveries are nested; see deliveries.
func deliverSome[E any](hooks []*hook[E], i int, e E, panics *atomic.Uint64) (next int) {
	entered := false
	defer func() {
		if !entered {
			return
		}
		hooks[i].leave() // panicked, or ended the goroutine
		next = i + 1
		if recover() != nil {
			panics.Add(1)
		}
	}()
	for ; i < len(hooks); i++ {
		h := hooks[i]
		entered = true
		if h.enter() {
			h.fn(e)
		}
		entered = false
		h.leave()
	}
	return i
}
