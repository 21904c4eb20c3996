package core

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A watermark calls a function when a number has reached high, and when it has fallen to
// low again. The owner of the number calls see, and then tell, without a lock, which calls
// the function.
type watermark struct {
	high, low int
	over      atomic.Bool // written by see

	told   *hook[bool]
	panics *atomic.Uint64

	said atomic.Bool // state told by the newest call that has returned; written with mu held
	mu   sync.Mutex
	busy bool // a call runs
	idle sync.Cond
}

// newWatermark makes a watermark. The caller is the function that panics if the arguments are wrong, with its package.
func newWatermark(caller string, high, low int, fn func(over bool), panics *atomic.Uint64) *watermark {
	if fn == nil {
		panic(caller + " needs a function")
	}
	if low < 0 || high <= low {
		panic(fmt.Sprintf("%s needs 0 <= low < high, not a high of %d and a low of %d", caller, high, low))
	}
	w := &watermark{high: high, low: low, told: newHook(glob.Pattern{}, fn), panics: panics}
	w.idle.L = &w.mu
	return w
}

// see records the number, and reports whether tell has to be called. The lock of the
// number's owner is held.
func (w *watermark) see(n int) bool {
	over := n >= w.high || n > w.low && w.over.Load()
	w.over.Store(over)
	return over != w.said.Load()
}

// tell calls the function until the function knows the current state, or waits while
// another goroutine does so. The wait keeps the number from going far beyond its mark
// before the function knows. Inside a handler, which may be the function, it does not
// wait.
func (w *watermark) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.said.Load() != w.over.Load() {
		switch {
		case !w.busy:
			w.call()
		case deliveries(1) > 0:
			return // the goroutine that calls the function goes on
		default:
			w.idle.Wait()
		}
	}
}

func (w *watermark) call() {
	over := !w.said.Load()
	w.busy = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.busy = false
		w.said.Store(over)
		w.idle.Broadcast()
	}()
	deliver([]*hook[bool]{w.told}, false, &over, w.panics)
}
