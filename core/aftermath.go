package core

// aftermath collects what a change under a lock entails for others, to be done
// once no lock is held.
type aftermath struct {
	wakes  []waker
	copies []*heldCopy // that end with what they are a copy of
	gone   []Signal    // retracted, for those who subscribed to that
}

func (a *aftermath) empty() bool { return len(a.wakes)+len(a.copies)+len(a.gone) == 0 }

func (a *aftermath) wake(w waker) {
	for _, have := range a.wakes {
		if have == w {
			return
		}
	}
	a.wakes = append(a.wakes, w)
}

// settle wakes who is to be woken, and then ends copies, which runs handlers. No
// lock may be held.
func (a *aftermath) settle() {
	for _, w := range a.wakes {
		w.wake()
	}
	if len(a.copies) > 0 {
		endCopies(a.copies)
	}
}

// endCopies ends all of them, even if a handler ends the goroutine.
func endCopies(copies []*heldCopy) {
	if len(copies) > 1 {
		defer endCopies(copies[1:])
	}
	c := copies[0]
	c.on.release(c.fact)
}
