package core

import "sync"

// ends are the engines whose end is waited for in bodies, even if the contexts of the
// bodies end: by Close, or by the ForEach or Map that it is the engine of.
var ends awaitedEnds

type awaitedEnds struct {
	mu    sync.Mutex
	waits map[endWait]int // how often; there is no circle of these
}

// endWait is a wait of a body of engine by for the end of engine of.
type endWait struct{ by, of uint64 }

// await notes that a body of engine by is about to wait for the end of engine of. It
// reports false, and notes nothing, if that would be waiting for itself.
func (a *awaitedEnds) await(by, of uint64) bool {
	if by == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waitsFor(of, by) {
		return false
	}
	put(&a.waits, endWait{by, of}, a.waits[endWait{by, of}]+1)
	return true
}

// waitsFor reports whether an engine is another one, or waits for its end, directly or not.
// mu is held.
func (a *awaitedEnds) waitsFor(by, of uint64) bool {
	found := by == of
	for w := range a.waits {
		found = found || w.by == by && a.waitsFor(w.of, of)
	}
	return found
}

// reached undoes an await.
func (a *awaitedEnds) reached(by, of uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := (endWait{by, of}); a.waits[w] > 1 {
		a.waits[w]--
	} else {
		delete(a.waits, w)
	}
}
