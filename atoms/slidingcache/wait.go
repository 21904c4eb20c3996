package slidingcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is what is known of a load to those who run inside it: they find it in their
// context. Loads that wait for others are noted, so that it is found out when they
// would wait in a circle, before it closes.
//
// It is the context that a load begins with as well: the values of the context of
// who asked first, and nothing else of it.
type load struct {
	caller context.Context
	cache  any // whose load it is
	over   atomic.Bool
	on     []*load // it waits for; guarded by waits
}

// waits guards what loads wait for, in all caches. Only loads that wait need it.
var waits sync.Mutex

type loadKey struct{}

func (*load) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*load) Done() <-chan struct{}                   { return nil }
func (*load) Err() error                              { return nil }

func (l *load) Value(key any) any {
	if key == (loadKey{}) {
		return l
	}
	return l.caller.Value(key)
}

// loadOf returns the load whose function was given ctx, and still runs, or nil.
func loadOf(ctx context.Context) *load {
	if l, ok := ctx.Value(loadKey{}).(*load); ok && !l.over.Load() {
		return l
	}
	return nil
}

// begin lets l wait for another load, unless that waits for l. A nil l is nobody.
func (l *load) begin(on *load) bool {
	if l == nil {
		return true
	}
	waits.Lock()
	defer waits.Unlock()
	if on.reaches(l) {
		return false
	}
	l.on = append(l.on, on)
	return true
}

// end ends what begin began.
func (l *load) end(on *load) {
	if l == nil {
		return
	}
	waits.Lock()
	defer waits.Unlock()
	i := slices.Index(l.on, on)
	l.on = slices.Delete(l.on, i, i+1)
}

// reaches reports whether l is other, or waits for it, over any number of loads.
func (l *load) reaches(other *load) bool {
	all := []*load{l}
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
