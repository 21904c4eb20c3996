package core

import "sync/atomic"

// hook is a user's function that is called for events, and the barrier its
// cancellation waits at.
//
// Whoever has an event collects the hooks and enters each, under the lock that
// guards their list; then, without it, delivers to all of them, which leaves each
// again. Counting the two apart saves an atomic operation for every event.
type hook[E any] struct {
	pattern   pattern // which events, where that is a matter of a name
	fn        func(E)
	entered   int64        // guarded by the lock of the list
	left      atomic.Int64 // of those entered
	cancelled atomic.Int64 // 0, or how many had entered by then, plus 1
	released  atomic.Bool
	idle      chan struct{} // closed by the last delivery after cancel
}

func newHook[E any](p pattern, fn func(E)) *hook[E] {
	return &hook[E]{pattern: p, fn: fn, idle: make(chan struct{})}
}

// running is the number of deliveries under way. The lock of the list is held.
func (h *hook[E]) running() int64 { return h.entered - h.left.Load() }

func enterAll[E any](hooks []*hook[E]) {
	for _, h := range hooks {
		h.entered++
	}
}

func (h *hook[E]) leave() {
	left := h.left.Add(1)
	if c := h.cancelled.Load(); c != 0 && left == c-1 && h.released.CompareAndSwap(false, true) {
		close(h.idle)
	}
}

// cancel says that nobody will enter any more. The lock of the list is held.
func (h *hook[E]) cancel() { h.cancelled.CompareAndSwap(0, h.entered+1) }

// wait waits, without the lock, until the deliveries that have entered before
// cancel have left: after it no call starts and none runs. From inside a delivery
// it does not wait, because that may be one of them.
func (h *hook[E]) wait() {
	if h.left.Load() == h.cancelled.Load()-1 || deliveries(1) > 0 {
		return
	}
	<-h.idle
}

// deliver calls every hook with e, in order, on this goroutine. A panic ends only
// the call it happens in and is counted. The hooks have been entered.
func deliver[E any](hooks []*hook[E], e E, panics *atomic.Uint64) {
	for i := 0; i < len(hooks); {
		i = deliverSome(hooks, i, e, panics)
	}
}

// deliverSome calls the hooks from i on and returns where to go on after a panic.
// There is one deferred frame for all of them, not one for each. Its frames on
// the stack tell how deep deliveries are nested; see deliveries.
func deliverSome[E any](hooks []*hook[E], i int, e E, panics *atomic.Uint64) (next int) {
	calling := false
	defer func() {
		if !calling {
			return
		}
		hooks[i].leave()
		next = i + 1
		if recover() != nil {
			panics.Add(1)
			return
		}
		for _, h := range hooks[next:] { // the goroutine ends here
			h.leave()
		}
	}()
	for ; i < len(hooks); i++ {
		h := hooks[i]
		if h.cancelled.Load() == 0 {
			calling = true
			h.fn(e)
			calling = false
		}
		h.leave()
	}
	return i
}
