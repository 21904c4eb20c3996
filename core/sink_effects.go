package core

import "slices"

// A waker is woken, after the locks are released, when something it waits for may
// have happened.
type waker interface{ wake() }

// effects collects what a change under a lock entails for others, to be done
// once no lock is held.
type effects struct {
	wakes  []waker
	copies []ending // of held facts, which end with these
	gone   []Signal // retracted, for subscribers to retractions
}

func (a *effects) empty() bool { return len(a.wakes)+len(a.copies)+len(a.gone) == 0 }

// wake notes that w has to be woken, if it is not nil.
func (a *effects) wake(w waker) {
	if w != nil && !slices.Contains(a.wakes, w) {
		a.wakes = append(a.wakes, w)
	}
}

// take adds those of from, which are empty then.
func (a *effects) take(from *effects) {
	for _, w := range from.wakes {
		a.wake(w)
	}
	a.copies = append(a.copies, from.copies...)
	from.clear()
}

// clear forgets them.
func (a *effects) clear() {
	if !a.empty() {
		*a = effects{}
	}
}

// settle wakes the wakers and then ends the copies, which runs handlers. No
// lock may be held.
func (a *effects) settle() {
	for _, w := range a.wakes {
		w.wake()
	}
	if len(a.copies) > 0 {
		endCopies(a.copies)
	}
}

// endCopies ends all of them, even if a handler ends the goroutine.
func endCopies(copies []ending) {
	if len(copies) > 1 {
		defer endCopies(copies[1:])
	}
	copies[0].end()
}

type ending interface{ end() }
