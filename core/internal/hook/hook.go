// Package hook calls functions of users: with a barrier for their cancellation, and after the locks
// are released.
package hook

import (
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A raise collects the handlers to call while it holds the lock, and calls them after it has released it. Each is
// entered before its call and left after it. A cancel lets no more calls start, and waits until as many have left as
// had entered. So it is safe to free what a handler uses. It does not wait for handlers before its own in the same
// delivery, nor if its own goroutine is inside a delivery, which the stack shows.
//
// The number of a coordinator is on the stack of its workers too, in base 4: Close and Drain know when an operation
// calls them for which they would wait. Goroutines have no identity in Go, and these functions take no context. The
// number costs 8 to 17 ns at the start of a worker, and 0.5 us to read at depth 10, 13 us at depth 200. Rejected: a map
// by goroutine id, 1.9 us at each start. Labels of pprof: they cannot be read. "Do not call this from a handler" in the
// documentation: such programs hang.

// Hook is a user's function that is called for events, with the barrier at which its
// cancellation waits.
//
// A delivery calls several hooks, one after the other. Each is entered right before
// its call and left after it. The first may be entered earlier, when the hooks are
// collected under the lock of their list. If there is just one, this saves an
// atomic operation.
type Hook[E any] struct {
	Fn           func(E)
	early        int64        // calls entered with the lock of the list held; guarded by that lock
	Late         atomic.Int64 // calls entered without the lock
	left         atomic.Int64
	Cancelled    atomic.Int64 // 0, or 1 more than early when it was cancelled
	released     atomic.Bool
	limit        int32         // the number of running calls that suggests a loop; guarded like early
	idle         chan struct{} // closed by the last call that leaves after cancel
	glob.Pattern               // selects events by name, if they have names
}

// New makes a hook. If it is made inside deliveries, these count as calls of it until a
// loop is suspected, because a loop may make a new handler in every round.
func New[E any](p glob.Pattern, fn func(E)) *Hook[E] {
	limit := int32(MaxNested - Deliveries(MaxNested))
	return &Hook[E]{Pattern: p, Fn: fn, limit: limit, idle: make(chan struct{})}
}

// Last makes a hook that is never cancelled, for what a sink does itself after the handlers of
// users. Made inside deliveries, it needs no lower limit: every loop leads through handlers as well.
func Last[E any](fn func(E)) *Hook[E] { return &Hook[E]{Fn: fn, limit: MaxNested} }

func (h *Hook[E]) Leave() {
	left := h.left.Add(1)
	if c := h.Cancelled.Load(); c != 0 && left == c-1+h.Late.Load() && h.released.CompareAndSwap(false, true) {
		close(h.idle)
	}
}

// Cancel keeps further calls from starting. The lock of the list is held.
func (h *Hook[E]) Cancel() { h.Cancelled.CompareAndSwap(0, h.early+1) }

// Wait waits, without the lock, until the calls that have started before cancel
// have ended. Inside a delivery it does not wait, because that delivery may be
// one of these calls.
func (h *Hook[E]) Wait() {
	late := h.Late.Load()
	if h.left.Load() == h.Cancelled.Load()-1+late || Deliveries(1) > 0 {
		return
	}
	<-h.idle
}

// hooks is a list of hooks, or what keeps one.
type hooks[E any] interface {
	Add(h *Hook[E]) (number uint64)
	Remove(number uint64) *Hook[E]
}

// Attach adds h to hooks that mu guards. Cancel removes it and waits.
func (h *Hook[E]) Attach(mu sync.Locker, to hooks[E]) (cancel func()) {
	mu.Lock()
	defer mu.Unlock()
	return h.Join(mu, to)
}

// Join is attach with mu held.
func (h *Hook[E]) Join(mu sync.Locker, to hooks[E]) (cancel func()) {
	number := to.Add(h)
	return func() {
		mu.Lock()
		to.Remove(number)
		h.Cancel()
		mu.Unlock()
		h.Wait()
	}
}

// EnterFirst enters the first of hooks. The lock of the list is held, and deliver
// follows without delay.
func EnterFirst[E any](hooks []*Hook[E]) {
	if len(hooks) > 0 {
		hooks[0].early++
	}
}

// Deliver calls every hook with e, in order, on this goroutine. A panic ends only its
// own call and is counted. Entered says that the first hook has been entered already.
func Deliver[E any](hooks []*Hook[E], entered bool, e *E, panics *atomic.Uint64) {
	for i := 0; i < len(hooks); entered = false {
		i = deliverSome(hooks, i, entered, e, panics)
	}
	if leaving.Load() > 0 {
		hasLeft()
	}
}

// deliverSome calls the hooks from i on and returns where to go on after a panic.
// There is one deferred frame for all hooks, not one for each hook. Its frames on
// the stack show how deep deliveries are nested; see deliveries.
func deliverSome[E any](hooks []*Hook[E], i int, entered bool, e *E, panics *atomic.Uint64) (next int) {
	defer func() {
		if i == len(hooks) {
			return
		}
		hooks[i].Leave()
		next = i + 1
		if recover() != nil {
			panics.Add(1)
		}
	}()
	for ; i < len(hooks); i++ {
		h := hooks[i]
		if !entered {
			h.Late.Add(1)
		}
		entered = false
		if h.Cancelled.Load() == 0 {
			h.Fn(*e)
		}
		h.Leave()
	}
	return i
}

// Only the goroutine's own stack answers three questions in Go. "How many deliveries is this
// goroutine inside?" is asked by a cancellation that would otherwise wait for itself, by a new
// handler, and by a raise that may be nested too deep. "Which goroutine is this?" is asked
// by such a raise. "Which coordinator's operation runs here?" is asked by Close, Drain and similar
// calls, which have no context. All are asked rarely, and never by a raise while few calls of
// its handlers run.

// Deliveries counts the deliveries on this goroutine's stack, up to most. This is cheap
// because deliverSome, which defers, is never inlined.
func Deliveries(most int) int { return frames.Of(deliverFunction, most) }

var deliverFunction = frames.Prefix() + "deliverSome["
