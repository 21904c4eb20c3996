package core

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// A watermark tells a function that a number has reached high, and that it is down to low
// again. The owner of the number calls see; wake, without a lock, calls the function.
type watermark struct {
	high, low int
	over      atomic.Bool // written by see

	told   *hook[bool]
	panics *atomic.Uint64

	mu   sync.Mutex
	said bool // by the newest call
	busy bool // a call runs
}

func newWatermark(caller string, high, low int, fn func(over bool), panics *atomic.Uint64) *watermark {
	switch {
	case fn == nil:
		panic("core: " + caller + " needs a function")
	case low < 0 || high <= low:
		panic(fmt.Sprintf("core: %s needs 0 <= low < high, not a high of %d and a low of %d", caller, high, low))
	}
	return &watermark{high: high, low: low, told: newHook(pattern{}, fn), panics: panics}
}

// see notes the number, and reports whether wake has to be called. The lock of the number's
// owner is held.
func (w *watermark) see(n int) bool {
	over := n >= w.high || n > w.low && w.over.Load()
	return w.over.Swap(over) != over
}

// wake calls the function until it has been told what is so. One goroutine does; the others
// leave it to that.
func (w *watermark) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.busy && w.said != w.over.Load() {
		w.tell()
	}
}

func (w *watermark) tell() {
	w.busy, w.said = true, !w.said
	over := w.said
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.busy = false
	}()
	deliver([]*hook[bool]{w.told}, false, &over, w.panics)
}
