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
	root   any         // the cache in whose operation it runs
	over   atomic.Bool
	on, by []*load // it waits for, and that wait for it; guarded by waits
	walk   uint64  // the last that came here; likewise

	pending atomic.Pointer[helper] // nil when it has begun, and its coordinator knows
	raiser  core.Raiser            // its operation, or that it is part of; set when it begins
}

// helper is a flight, of any cache.
type helper interface {
	help(ctx context.Context, within, on, place *load) bool
}

// waits is what loads wait for, in all caches. Only loads that wait need it.
var waits struct {
	sync.Mutex
	idle  map[any][]*load // by cache, those that wait and keep a place there meanwhile
	walks uint64          // number of the last walk
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

// part is the context of a load that is part of another one's operation.
type part struct {
	*load
	operation *core.Operation
}

func (p part) Value(key any) any {
	value := p.load.Value(key)
	if _, ok := value.(*core.Operation); ok { // of who asked first
		return p.operation
	}
	return value
}

// loadOf returns the load whose function was given ctx, and still runs, or nil.
func loadOf(ctx context.Context) *load {
	if l, ok := ctx.Value(loadKey{}).(*load); ok && !l.over.Load() {
		return l
	}
	return nil
}

// partOf reports whether l runs in an operation of a cache.
func (l *load) partOf(cache any) bool { return l != nil && l.root == cache }

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
		if f == nil || !f.help(ctx, l, on, place) {
			return any
		}
		any = true
	}
}

// idle returns a flight that on is, or waits for, and that waits for its turn in vain:
// some load keeps a place of its cache and waits for l, or for something else that
// cannot have a turn before. So who would close a circle, also through the places of
// some caches, finds what to run instead. It is always something that l waits for:
// anything else might need l, which could not go on before it returns. Place is who
// keeps one. If it is known that l is stuck otherwise, any flight that waits for its
// turn will do, and there may be no place.
func (l *load) idle(on *load, stuck bool) (f helper, place *load) {
	if l == nil {
		return nil, nil
	}
	waits.Lock()
	defer waits.Unlock()
	type step struct {
		to    *load
		first *helper // that waits for its turn, on the way
		place *load   // and over whose place the way goes on
	}
	behind := l.all(backward)
	waits.walks++
	on.walk = waits.walks
	steps := []step{{to: on}}
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		next, pending := s.to.on, s.to.pending.Load()
		if pending != nil {
			w := slices.IndexFunc(behind, func(l *load) bool { return l.cache == s.to.cache })
			if s.first == nil {
				s.first = pending
				if w >= 0 {
					s.place = behind[w]
				}
			}
			if w >= 0 || stuck {
				return *s.first, s.place
			}
			if next = waits.idle[s.to.cache]; len(next) < s.to.limit {
				continue
			}
		}
		for _, n := range next {
			if n.walk == waits.walks {
				continue
			}
			n.walk = waits.walks
			step := step{n, s.first, s.place}
			if step.first != nil && step.place == nil {
				step.place = n
			}
			steps = append(steps, step)
		}
	}
	return nil, nil
}

func forward(l *load) []*load  { return l.on }
func backward(l *load) []*load { return l.by }

// all returns l and all that is found from there.
func (l *load) all(next func(*load) []*load) []*load {
	waits.walks++
	l.walk = waits.walks
	all := []*load{l}
	for i := 0; i < len(all); i++ {
		for _, n := range next(all[i]) {
			if n.walk != waits.walks {
				n.walk = waits.walks
				all = append(all, n)
			}
		}
	}
	return all
}
