package lru

import (
	"context"
	"slices"
	"sync"
)

// wait is a load, as those who wait see it: they may be loads as well. That they
// wait in a circle is found out before it closes.
type wait struct{ on []*wait }

// waits guards what loads wait on, in all caches. Only a load that waits for another
// one needs it.
var waits sync.Mutex

type loadKey struct{}

// loadOf returns the load whose function was given ctx, or nil.
func loadOf(ctx context.Context) *wait {
	w, _ := ctx.Value(loadKey{}).(*wait)
	return w
}

// begin lets w wait on another load, unless that waits on w.
func (w *wait) begin(on *wait) bool {
	waits.Lock()
	defer waits.Unlock()
	if on.reaches(w) {
		return false
	}
	w.on = append(w.on, on)
	return true
}

// end ends what begin began.
func (w *wait) end(on *wait) {
	waits.Lock()
	defer waits.Unlock()
	i := slices.Index(w.on, on)
	w.on = slices.Delete(w.on, i, i+1)
}

// reaches reports whether w is other, or waits on it, over any number of loads.
func (w *wait) reaches(other *wait) bool {
	all := []*wait{w}
	for i := 0; i < len(all); i++ {
		if all[i] == other {
			return true
		}
		for _, next := range all[i].on {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return false
}
