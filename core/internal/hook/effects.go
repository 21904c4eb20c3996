package hook

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// A Waker is woken after the locks are released, when an event that it waits for may have
// happened. It runs no foreign code.
type Waker interface{ Wake() }

// A Teller calls functions of users.
type Teller interface{ Tell() }

// An Ending ends something under the lock of its sink, and adds the effects.
type Ending interface{ End(a *Effects) }

// Effects collects the effects of a change under a lock. They are settled when no lock is
// held.
type Effects struct {
	Wakes  []Waker
	Copies []Ending // copies of held facts, which end with the originals
	Tells  []Teller
	known  map[any]struct{} // of wakes and tells after the first few
}

func (a *Effects) Empty() bool { return len(a.Wakes)+len(a.Copies)+len(a.Tells) == 0 }

// Foreign reports whether settling may run foreign code.
func (a *Effects) Foreign() bool { return len(a.Copies)+len(a.Tells) > 0 }

// Waits reports whether there is something for settleOwn.
func (a *Effects) Waits() bool { return len(a.Copies)+len(a.Wakes) > 0 }

// TakeTells returns the functions that have to be called, and forgets them.
func (a *Effects) TakeTells() []Teller {
	tells := a.Tells
	a.Tells, a.known = nil, nil
	return tells
}

// Wake records that w has to be woken, if it is not nil.
func (a *Effects) Wake(w Waker) {
	if w != nil && isNew(a.Wakes, w, &a.known) {
		a.Wakes = append(a.Wakes, w)
	}
}

// few are compared one by one: this costs less.
const few = 16

// isNew reports whether one is not in list yet. It may be wrong once about each of the first few. Others are
// in known, so that many cost no more than few.
func isNew[T comparable](list []T, one T, known *map[any]struct{}) bool {
	if len(list) < few {
		return !slices.Contains(list, one)
	}
	n := len(*known)
	lists.Put(known, any(one), struct{}{})
	return len(*known) > n
}

// Tell records that t has to be called.
func (a *Effects) Tell(t Teller) {
	if isNew(a.Tells, t, &a.known) {
		a.Tells = append(a.Tells, t)
	}
}

// Take moves the effects of from.
func (a *Effects) Take(from *Effects) {
	for _, w := range from.Wakes {
		a.Wake(w)
	}
	a.Copies = append(a.Copies, from.Copies...)
	a.Tells = append(a.Tells, from.Tells...)
	from.Clear()
}

// Clear forgets them.
func (a *Effects) Clear() {
	if !a.Empty() {
		*a = Effects{}
	}
}

// Settle runs all effects. No lock may be held.
func (a *Effects) Settle() {
	a.SettleOwn()
	for _, t := range a.Tells {
		t.Tell()
	}
}

// SettleOwn runs the effects without foreign code: it ends copies and wakes wakers. The
// tells stay.
func (a *Effects) SettleOwn() {
	for len(a.Copies) > 0 {
		c := a.Copies[0]
		a.Copies = a.Copies[1:]
		c.End(a)
	}
	wakes := a.Wakes
	a.Wakes, a.known = nil, nil
	for _, w := range wakes {
		w.Wake()
	}
}
