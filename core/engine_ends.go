package core

import (
	"sync"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// ends has the engines for whose end bodies wait, even if the contexts of the bodies end: in Close,
// or in ForEach or Map.
var ends awaitedEnds

type awaitedEnds struct {
	mu    sync.Mutex
	waits map[endWait]int // number of such waits; they never form a circle
}

// endWait is a wait of a body of engine by for the end of engine of.
type endWait struct{ by, of uint64 }

// await records that a body of engine by is about to wait for the end of engine of. If the body
// would wait for itself, it records nothing and returns false.
func (a *awaitedEnds) await(by, of uint64) bool {
	if by == 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waitsFor(of, by) {
		return false
	}
	lists.Put(&a.waits, endWait{by, of}, a.waits[endWait{by, of}]+1)
	return true
}

// waitsFor reports whether two engines are the same, or the first waits for the end of the second,
// directly or not. mu is held.
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
