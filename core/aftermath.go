package core

// aftermath collects what a change under a lock entails for others, to be done
// once no lock is held.
type aftermath struct {
	wakes []waker
	gone  []Signal // retracted, for those who subscribed to that
}

func (a *aftermath) wake(w waker) {
	for _, have := range a.wakes {
		if have == w {
			return
		}
	}
	a.wakes = append(a.wakes, w)
}

// settle wakes who is to be woken. No lock may be held.
func (a *aftermath) settle() {
	for _, w := range a.wakes {
		w.wake()
	}
}
