package core

import (
	"sync"
	"sync/atomic"
)

// A raise from inside a delivery that raises again from inside its delivery is
// legal until it is endless. While few calls of a handler run there is nothing to
// find out; with crowd of them, a raise looks at the stack for the deliveries its
// own goroutine is inside of, and is refused when they are that many.
//
// Refusing the deepest raise ends a loop only if no handler raises again on the way
// back: two handlers that do would be called 2 to the power of crowd times. So the
// goroutine is a runaway until it is out of the handlers it was in, and does not
// get to handlers that are suspects meanwhile.
//
// Crowd is beyond the depth of any sensible chain of handlers, and a stack of that many
// deliveries is small. A sink that remembers maxRunaways has as many endless loops at once.
const (
	crowd       = 64
	maxRunaways = 256
)

// hook is a user's function that is called for events, and the barrier its
// cancellation waits at.
//
// A delivery calls several hooks, one after the other. Each is entered right before
// its call and left after it; the first may be entered already when the hooks are
// collected, under the lock that guards their list, which saves an atomic
// operation where there is just one.
type hook[E any] struct {
	fn        func(E)
	early     int64        // entered with the lock of the list held, which guards it
	late      atomic.Int64 // entered without
	left      atomic.Int64
	cancelled atomic.Int64 // 0, or 1 more than early when it was cancelled
	released  atomic.Bool
	limit     int32         // with so many running calls a loop is suspected; guarded like early
	idle      chan struct{} // closed by the last call that leaves after cancel
	pattern                 // which events, where that is a matter of a name
}

// newHook makes a hook. The deliveries it is made inside of count as calls of it
// until a loop is suspected, because a loop may make a new handler in every round.
func newHook[E any](p pattern, fn func(E)) *hook[E] {
	limit := int32(crowd - deliveries(crowd))
	return &hook[E]{pattern: p, fn: fn, limit: limit, idle: make(chan struct{})}
}

// running is the number of calls under way. The lock of the list is held.
func (h *hook[E]) running() int64 { return h.early + h.late.Load() - h.left.Load() }

func (h *hook[E]) leave() {
	left := h.left.Add(1)
	if c := h.cancelled.Load(); c != 0 && left == c-1+h.late.Load() && h.released.CompareAndSwap(false, true) {
		close(h.idle)
	}
}

// cancel lets no more calls start. The lock of the list is held.
func (h *hook[E]) cancel() { h.cancelled.CompareAndSwap(0, h.early+1) }

// wait waits, without the lock, until the calls that have started before cancel
// have ended. From inside a delivery it does not wait, because that may be one of
// them.
func (h *hook[E]) wait() {
	late := h.late.Load()
	if h.left.Load() == h.cancelled.Load()-1+late || deliveries(1) > 0 {
		return
	}
	<-h.idle
}

// attach appends h to a list of hooks that mu guards, and which is replaced, not changed.
// Changed is called with mu held. Cancel takes h off the list and waits.
func (h *hook[E]) attach(mu sync.Locker, list *[]*hook[E], changed func()) (cancel func()) {
	mu.Lock()
	defer mu.Unlock()
	return h.join(mu, list, changed)
}

// join is attach with mu held.
func (h *hook[E]) join(mu sync.Locker, list *[]*hook[E], changed func()) (cancel func()) {
	*list = append((*list)[:len(*list):len(*list)], h)
	changed()
	return func() {
		mu.Lock()
		*list = without(*list, h)
		changed()
		h.cancel()
		mu.Unlock()
		h.wait()
	}
}

// enterFirst enters the first of hooks. The lock of the list is held, and deliver
// follows without delay.
func enterFirst[E any](hooks []*hook[E]) {
	if len(hooks) > 0 {
		hooks[0].early++
	}
}

// deliver calls every hook with e, in order, on this goroutine. A panic ends only
// the call it happens in and is counted, and so does the end of the goroutine. The first
// hook has been entered if entered says so.
func deliver[E any](hooks []*hook[E], entered bool, e *E, panics *atomic.Uint64) {
	for i := 0; i < len(hooks); entered = false {
		i = deliverSome(hooks, i, entered, e, panics)
	}
}

// deliverSome calls the hooks from i on and returns where to go on after a panic.
// There is one deferred frame for all of them, not one for each. Its frames on
// the stack show how deep deliveries are nested; see deliveries.
func deliverSome[E any](hooks []*hook[E], i int, entered bool, e *E, panics *atomic.Uint64) (next int) {
	defer func() {
		if i == len(hooks) {
			return
		}
		hooks[i].leave()
		next = i + 1
		if recover() != nil {
			panics.Add(1)
			return
		}
		deliver(hooks[next:], false, e, panics) // the goroutine ends
	}()
	for ; i < len(hooks); i++ {
		h := hooks[i]
		if !entered {
			h.late.Add(1)
		}
		entered = false
		if h.cancelled.Load() == 0 {
			h.fn(*e)
		}
		h.leave()
	}
	return i
}

// Three questions have no other answer in Go than the goroutine's own stack: "how
// many deliveries am I inside of?", asked by a cancellation that would otherwise
// wait for itself, by a new handler and by a raise that may be part of an endless
// loop; "which goroutine is this?", asked by such a raise; and "which coordinator's operation runs
// here?", asked by Close, Drain and friends, which have no context to find it in.
// All are asked rarely, and never by a raise that is not part of a suspected loop.

// deliveries counts the deliveries that this goroutine is inside of, up to most.
// That deliverSome is never inlined, because it defers, makes it cheap.
func deliveries(most int) int { return framesOf(deliverFunction, most) }
