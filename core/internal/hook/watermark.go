package hook

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// A Watermark calls a function when a number has reached high, and when it has fallen to
// low again. The owner of the number calls see, and then tell, without a lock, which calls
// the function.
type Watermark struct {
	high, Low int
	Over      atomic.Bool // written by see

	Told   *Hook[bool]
	panics *atomic.Uint64

	said atomic.Bool // state told by the newest call that has returned; written with mu held
	mu   sync.Mutex
	busy bool // a call runs
	idle sync.Cond
}

// NewWatermark makes a watermark. The caller is the function that panics if the arguments are wrong, with its package.
func NewWatermark(caller string, high, low int, fn func(over bool), panics *atomic.Uint64) *Watermark {
	if fn == nil {
		panic(caller + " needs a function")
	}
	if low < 0 || high <= low {
		panic(fmt.Sprintf("%s needs 0 <= low < high, not a high of %d and a low of %d", caller, high, low))
	}
	w := &Watermark{high: high, Low: low, Told: New(glob.Pattern{}, fn), panics: panics}
	w.idle.L = &w.mu
	return w
}

// See records the number, and reports whether tell has to be called. The lock of the
// number's owner is held.
func (w *Watermark) See(n int) bool {
	over := n >= w.high || n > w.Low && w.Over.Load()
	w.Over.Store(over)
	return over != w.said.Load()
}

// Tell calls the function until the function knows the current state, or waits while
// another goroutine does so. The wait keeps the number from going far beyond its mark
// before the function knows. Inside a handler, which may be the function, it does not
// wait.
func (w *Watermark) Tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.said.Load() != w.Over.Load() {
		switch {
		case !w.busy:
			w.call()
		case Deliveries(1) > 0:
			return // the goroutine that calls the function goes on
		default:
			w.idle.Wait()
		}
	}
}

func (w *Watermark) call() {
	over := !w.said.Load()
	w.busy = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.busy = false
		w.said.Store(over)
		w.idle.Broadcast()
	}()
	Deliver([]*Hook[bool]{w.Told}, false, &over, w.panics)
}
