package core

import "slices"

// A waker is woken after the locks are released, when an event that it waits for may have
// happened. It runs no foreign code.
type waker interface{ wake() }

// A teller calls functions of users.
type teller interface{ tell() }

// An ending ends something under the lock of its sink, and adds the effects.
type ending interface{ end(a *effects) }

// effects collects the effects of a change under a lock. They are settled when no lock is
// held.
type effects struct {
	wakes  []waker
	copies []ending // copies of held facts, which end with the originals
	tells  []teller
	known  map[any]struct{} // of wakes and tells after the first few
}

func (a *effects) empty() bool { return len(a.wakes) == 0 && !a.foreign() }

// foreign reports whether settling may run foreign code.
func (a *effects) foreign() bool { return len(a.copies)+len(a.tells) > 0 }

// wake records that w has to be woken, if it is not nil.
func (a *effects) wake(w waker) {
	if w != nil && isNew(a.wakes, w, &a.known) {
		a.wakes = append(a.wakes, w)
	}
}

// isNew reports whether one is not in list yet. It may be wrong once about each of the first few. Others are
// in known, so that many cost no more than few.
func isNew[T comparable](list []T, one T, known *map[any]struct{}) bool {
	if len(list) < fewWatchers {
		return !slices.Contains(list, one)
	}
	n := len(*known)
	put(known, any(one), struct{}{})
	return len(*known) > n
}

// tell records that t has to be called.
func (a *effects) tell(t teller) {
	if isNew(a.tells, t, &a.known) {
		a.tells = append(a.tells, t)
	}
}

// take moves the effects of from.
func (a *effects) take(from *effects) {
	for _, w := range from.wakes {
		a.wake(w)
	}
	a.copies = append(a.copies, from.copies...)
	a.tells = append(a.tells, from.tells...)
	from.clear()
}

// clear forgets them.
func (a *effects) clear() {
	if !a.empty() {
		*a = effects{}
	}
}

// settle runs all effects. No lock may be held.
func (a *effects) settle() {
	a.settleOwn()
	each(a.tells, teller.tell)
}

// settleOwn runs the effects without foreign code: it ends copies and wakes wakers. The
// tells stay.
func (a *effects) settleOwn() {
	for len(a.copies) > 0 {
		c := a.copies[0]
		a.copies = a.copies[1:]
		c.end(a)
	}
	wakes := a.wakes
	a.wakes, a.known = nil, nil
	for _, w := range wakes {
		w.wake()
	}
}

// each calls fn with every element, even if a call ends the goroutine.
func each[T any](all []T, fn func(T)) {
	i := 0
	defer func() {
		if i < len(all) {
			each(all[i:], fn)
		}
	}()
	for i < len(all) {
		i++
		fn(all[i-1])
	}
}
