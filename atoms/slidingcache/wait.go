package slidingcache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// load is what is known of a load to those who run inside it: they find it in their
// context. Loads that wait for others are noted, so that it is found out when they
// would wait in a circle, before it closes.
//
// It is the context that a load begins with as well: the values of the context of
// who asked first, and nothing else of it.
type load struct {
	caller context.Context
	cache  any         // whose load it is
	limit  int         // of places there
	placed atomic.Bool // it has one; a load that is part of another operation has none
	over   atomic.Bool
	on, by []*load // it waits for, and that wait for it; guarded by waits

	pending atomic.Pointer[helper] // nil when it has begun
	raiser  core.Raiser            // its operation, or that it is part of; set when it begins
}

// helper is a flight, of any cache.
type helper interface {
	help(ctx context.Context, within, on, place *load)
}

// waits is what loads wait for, in all caches. Only loads that wait need it.
var waits struct {
	sync.Mutex
	idle map[any][]*load // by cache, those that wait and keep a place there meanwhile
}

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
	if len(l.on) == 0 && l.placed.Load() {
		if waits.idle == nil {
			waits.idle = make(map[any][]*load)
		}
		waits.idle[l.cache] = append(waits.idle[l.cache], l)
	}
	l.on, on.by = append(l.on, on), append(on.by, l)
	return true
}

// end ends what begin began.
func (l *load) end(on *load) {
	if l == nil {
		return
	}
	waits.Lock()
	defer waits.Unlock()
	l.on, on.by = without(l.on, on), without(on.by, l)
	if len(l.on) > 0 || !l.placed.Load() {
		return
	}
	if idle := without(waits.idle[l.cache], l); len(idle) > 0 {
		waits.idle[l.cache] = idle
	} else if delete(waits.idle, l.cache); len(waits.idle) == 0 {
		waits.idle = nil // maps do not shrink
	}
}

func without(list []*load, one *load) []*load {
	i := slices.Index(list, one)
	return slices.Delete(list, i, i+1)
}

// reaches reports whether l is other, or waits for it, over any number of loads.
func (l *load) reaches(other *load) bool { return slices.Contains(l.all(forward), other) }

// help runs what l is about to wait for and what nobody else might ever run, and
// reports whether there was any. That l waits is noted already, so who comes later
// finds what was missing here.
func (l *load) help(ctx context.Context, on *load, stuck bool) (any bool) {
	for {
		f, place := l.idle(on, stuck)
		if f == nil {
			return any
		}
		f.help(ctx, l, on, place)
		any = true
	}
}

// idle returns a flight that on is, or waits for, and that waits for its turn although
// a load of the same cache is l, or waits for l, and so keeps its place for nothing. What
// waits for its turn where all places are kept like that, waits for those who keep them:
// so the last load that would close a circle through the places of some caches finds
// the one that its own place is good for. If it is known that l is stuck otherwise, any
// flight that waits for its turn will do, and there may be no place.
func (l *load) idle(on *load, stuck bool) (f helper, place *load) {
	if l == nil {
		return nil, nil
	}
	waits.Lock()
	defer waits.Unlock()
	holders := l.all(backward)
	for _, next := range on.all(blockers) {
		f := next.pending.Load()
		if f == nil {
			continue
		}
		i := slices.IndexFunc(holders, func(l *load) bool { return l.cache == next.cache })
		switch {
		case i >= 0:
			return *f, holders[i]
		case stuck:
			return *f, nil
		}
	}
	return nil, nil
}

func forward(l *load) []*load  { return l.on }
func backward(l *load) []*load { return l.by }

// blockers returns what a load waits for, be it that loads give up their places.
func blockers(l *load) []*load {
	if l.pending.Load() == nil {
		return l.on
	}
	if idle := waits.idle[l.cache]; len(idle) >= l.limit {
		return idle
	}
	return nil
}

// all returns l and all that is found from there.
func (l *load) all(next func(*load) []*load) []*load {
	all := []*load{l}
	for i := 0; i < len(all); i++ {
		for _, n := range next(all[i]) {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}
