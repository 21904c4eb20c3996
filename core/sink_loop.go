package core

import "slices"

// runaway is a goroutine of which a raise was refused, and the handlers that have
// been running since, among which are those it is in.
type runaway struct {
	goroutine uint64
	inside    []suspect
}

// runaways are those of a sink, at most maxRunaways. Its lock guards them.
type runaways []*runaway

// suspect is a handler that a loop may lead through. Every raise that it is to
// hear looks at the stack.
type suspect interface{ rests() bool }

// crowded reports whether so many calls of a handler run that some may be nested.
// The lock of the list is held.
func crowded[E any](hooks []*hook[E]) bool {
	for _, h := range hooks {
		if h.running() >= int64(h.limit) {
			return true
		}
	}
	return false
}

// endless decides whether a delivery to hooks, some of which are crowded, is not to
// be. All makes suspects of all handlers of the sink that run. The lock is held.
func endless[E any](known *runaways, w witness, all func() []suspect, lists ...[]*hook[E]) bool {
	*known = slices.DeleteFunc(*known, func(r *runaway) bool {
		r.inside = slices.DeleteFunc(r.inside, suspect.rests)
		return len(r.inside) == 0 || w.depth == 0 && r.goroutine == w.goroutine
	})
	refused := slices.ContainsFunc(*known, func(r *runaway) bool { return r.goroutine == w.goroutine })
	if !refused && w.depth >= crowd {
		refused = true
		r := &runaway{goroutine: w.goroutine, inside: all()}
		for _, hooks := range lists {
			r.inside = appendRunning(r.inside, hooks)
		}
		if len(*known) == maxRunaways {
			*known = slices.Delete(*known, 0, 1)
		}
		*known = append(*known, r)
	}
	for _, hooks := range lists {
		for _, h := range hooks {
			if refused {
				h.limit = 0
			} else if len(*known) == 0 {
				h.limit = crowd
			}
		}
	}
	return refused
}

// appendRunning makes suspects of those of hooks that run, and appends them.
func appendRunning[E any](to []suspect, hooks []*hook[E]) []suspect {
	for _, h := range hooks {
		if !h.rests() {
			h.limit = 0
			to = append(to, h)
		}
	}
	return to
}

func (h *hook[E]) rests() bool { return h.running() == 0 }

// witness is what a goroutine's stack shows about it.
type witness struct {
	goroutine uint64
	depth     int // deliveries it is inside of, up to crowd
}

func askStack() witness { return witness{goroutineID(), deliveries(crowd)} }
