// Package window decides what is remembered of items that have ended, and for how long. It is without
// lock, goroutine or clock.
package window

import (
	"math"

	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// A Window remembers the newest items that have ended, bounded by count and by age since their end.
// Items with one state, those that failed, have a bound of their own, so that others do not push them
// out.
//
// An item with pins is not evicted. When its turn comes it is moved aside, so that it is looked at
// only once. It is evicted when its last pin goes.
type Window struct {
	maxAge int64 // 0: no limit
	state  uint8 // of the items in failed
	ended  share // all but the failed ones
	failed share
	aside  sched.List // items that only a pin keeps
	pins   map[*sched.Item]pins
}

// share is a part of a window with its own bound.
type share struct {
	limit int // how many are kept, those aside not counted
	sched.List
}

// pins are the pins of an item, which may not have ended.
type pins struct {
	n     int
	aside bool
}

// New makes an empty window. MaxAge 0 means no limit. The items with the state failed are bounded by
// limitFailed, the others by limit.
func New(maxAge int64, limit, limitFailed int, failed uint8) Window {
	return Window{maxAge: maxAge, state: failed, ended: share{limit: limit}, failed: share{limit: limitFailed}}
}

// of returns the share of an item that is not aside.
func (w *Window) of(item *sched.Item) *share {
	if item.State == w.state {
		return &w.failed
	}
	return &w.ended
}

// Add takes in an item that has just ended. Its Value is the time of that.
func (w *Window) Add(item *sched.Item) { w.of(item).Push(item) }

// Oldest is when the oldest item that is not aside has ended.
func (w *Window) Oldest() (at int64, ok bool) {
	for _, s := range [...]*share{&w.ended, &w.failed} {
		if item := s.First(); item != nil && (!ok || item.Value < at) {
			at, ok = item.Value, true
		}
	}
	return at, ok
}

// Evict removes and returns an item that is too old or one too many, or nil.
func (w *Window) Evict(now int64) *sched.Item {
	if w.maxAge > 0 {
		now -= w.maxAge
	} else {
		now = math.MinInt64
	}
	for {
		s := &w.ended
		if !s.over(now) {
			if s = &w.failed; !s.over(now) {
				return nil
			}
		}
		item := s.First()
		s.Remove(item)
		n := w.Pins(item)
		if n == 0 {
			return item
		}
		w.pins[item] = pins{n, true}
		w.aside.Push(item)
	}
}

// over reports whether the oldest item is one too many, or has ended by that time.
func (s *share) over(ended int64) bool {
	item := s.First()
	return item != nil && (s.Len() > s.limit || item.Value <= ended)
}

// Remove takes out an item that has ended, with its pins.
func (w *Window) Remove(item *sched.Item) {
	if w.pins[item].aside {
		w.aside.Remove(item)
	} else {
		w.of(item).Remove(item)
	}
	delete(w.pins, item)
}

// Any is an item in the window, or nil when there is none.
func (w *Window) Any() *sched.Item {
	for _, l := range [...]*sched.List{&w.ended.List, &w.failed.List, &w.aside} {
		if item := l.First(); item != nil {
			return item
		}
	}
	return nil
}

// Len is how many items that have ended are in the window.
func (w *Window) Len() int { return w.ended.Len() + w.failed.Len() + w.aside.Len() }

// Pin adds a pin to an item, which may not have ended, unless limit items have pins already.
func (w *Window) Pin(item *sched.Item, limit int) bool {
	p := w.pins[item]
	if p.n == 0 && len(w.pins) >= limit {
		return false
	}
	p.n++
	if w.pins == nil {
		w.pins = map[*sched.Item]pins{}
	}
	w.pins[item] = p
	return true
}

// Unpin takes a pin away. It reports whether the item has left the window because of that.
func (w *Window) Unpin(item *sched.Item) (evicted bool) {
	p := w.pins[item]
	if p.n--; p.n > 0 {
		w.pins[item] = p
		return false
	}
	delete(w.pins, item)
	if p.aside {
		w.aside.Remove(item)
	}
	return p.aside
}

// Pins is how many pins an item has.
func (w *Window) Pins(item *sched.Item) int {
	if len(w.pins) == 0 { // most often
		return 0
	}
	return w.pins[item].n
}

// Pinned is how many items have pins.
func (w *Window) Pinned() int { return len(w.pins) }
