package core

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
)

// runaway is a goroutine in an endless loop: one of its raises was refused. It has the
// handlers that have been running since; the goroutine's own handlers are among them.
type runaway struct {
	goroutine uint64
	inside    []suspect
}

// runaways are the runaway goroutines of a sink, at most maxRunaways. The sink's lock
// guards them.
type runaways []*runaway

// suspect is a handler that may be part of an endless loop. Every raise that would call it
// looks at the stack.
type suspect interface{ rests() bool }

// crowded reports whether enough calls of a handler run that they may be a loop. The lock
// of the list is held.
func crowded[E any](hooks []*hook[E]) bool {
	for _, h := range hooks {
		if h.running() >= int64(h.limit) {
			return true
		}
	}
	return false
}

// endless reports whether a delivery to hooks is part of an endless loop. Some of the hooks
// are crowded. All makes all running handlers of the sink suspects. The lock is held.
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

// appendRunning makes the running hooks suspects, and appends them.
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

// witness is what a goroutine's stack says about the goroutine.
type witness struct {
	goroutine uint64
	depth     int // number of deliveries on its stack, up to crowd
}

func askStack() witness { return witness{frames.Goroutine(), deliveries(crowd)} }
