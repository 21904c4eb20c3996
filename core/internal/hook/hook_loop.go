package hook

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
)

// runaway is a goroutine in an endless loop: one of its raises was refused. It has the
// handlers that have been running since; the goroutine's own handlers are among them.
type runaway struct {
	goroutine uint64
	inside    []Suspect
}

// Runaways are the runaway goroutines of a sink, at most maxRunaways. The sink's lock
// guards them.
type Runaways []*runaway

// Suspect is a handler that may be part of an endless loop. Every raise that would call it
// looks at the stack.
type Suspect interface{ rests() bool }

// Crowded reports whether enough calls of a handler run that they may be a loop. The lock
// of the list is held.
func Crowded[E any](hooks []*Hook[E]) bool {
	for _, h := range hooks {
		if h.running() >= int64(h.Limit) {
			return true
		}
	}
	return false
}

// Endless reports whether a delivery to hooks is part of an endless loop. Some of the hooks
// are crowded. All makes all running handlers of the sink suspects. The lock is held.
func Endless[E any](known *Runaways, w witness, all func() []Suspect, lists ...[]*Hook[E]) bool {
	*known = slices.DeleteFunc(*known, func(r *runaway) bool {
		r.inside = slices.DeleteFunc(r.inside, Suspect.rests)
		return len(r.inside) == 0 || w.depth == 0 && r.goroutine == w.goroutine
	})
	refused := slices.ContainsFunc(*known, func(r *runaway) bool { return r.goroutine == w.goroutine })
	if !refused && w.depth >= Crowd {
		refused = true
		r := &runaway{goroutine: w.goroutine, inside: all()}
		for _, hooks := range lists {
			r.inside = AppendRunning(r.inside, hooks)
		}
		if len(*known) == maxRunaways {
			*known = slices.Delete(*known, 0, 1)
		}
		*known = append(*known, r)
	}
	for _, hooks := range lists {
		for _, h := range hooks {
			if refused {
				h.Limit = 0
			} else if len(*known) == 0 {
				h.Limit = Crowd
			}
		}
	}
	return refused
}

// AppendRunning makes the running hooks suspects, and appends them.
func AppendRunning[E any](to []Suspect, hooks []*Hook[E]) []Suspect {
	for _, h := range hooks {
		if !h.rests() {
			h.Limit = 0
			to = append(to, h)
		}
	}
	return to
}

func (h *Hook[E]) rests() bool { return h.running() == 0 }

// witness is what a goroutine's stack says about the goroutine.
type witness struct {
	goroutine uint64
	depth     int // number of deliveries on its stack, up to crowd
}

func AskStack() witness { return witness{frames.Goroutine(), Deliveries(Crowd)} }
