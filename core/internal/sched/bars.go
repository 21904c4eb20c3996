package sched

// Bars are the lanes, and the classes in a lane, whose items may not start for now. Nil bars
// nothing.
type Bars struct {
	lanes   uint64
	classes []classSet // by lane
}

// Lane bars a lane.
func (s *Bars) Lane(lane uint8) { s.lanes |= 1 << lane }

// Class bars a class in a lane. The class is not 0.
func (s *Bars) Class(lane, class uint8) {
	for len(s.classes) <= int(lane) {
		s.classes = append(s.classes, 0)
	}
	s.classes[lane] |= setOf(class)
}

func (s *Bars) has(lane int) bool { return s != nil && s.lanes>>lane&1 != 0 }

// in returns the classes that are barred in a lane that is not barred as a whole.
func (s *Bars) in(lane int) classSet {
	if s == nil || lane >= len(s.classes) {
		return 0
	}
	return s.classes[lane]
}

// MaxLanes is how many lanes a board can have, and how many classes besides the class 0: a set has
// a bit for each.
const MaxLanes = 64

// classSet is a set of classes, by number. The class 0, of items without a class, is in no set.
type classSet uint64

func setOf(class uint8) classSet { return 1 << (class - 1) }

// A Place is where something can hold up items.
type Place uint8

// The places of an item, in the order in which they are asked.
const (
	Everywhere Place = iota
	InLane           // its lane
	InClass          // its class
)

// Deferral is what defers the items of a place at one moment.
type Deferral struct {
	Holds   bool
	Held    bool  // by something that is held: MaxDefer does not count
	Since   int64 // otherwise, since when
	Expires int64 // when that may end by itself; math.MaxInt64: never
	Most    int64 // MaxDefer; negative: no limit
}

// Until is the latest time until which an item is deferred; math.MaxInt64: there is none.
func (d *Deferral) Until(item *Item) int64 {
	if d.Most < 0 || d.Held {
		return never
	}
	if until := max(item.Enqueued, d.Since) + d.Most; until >= 0 {
		return until
	}
	return never
}

// Deferrals are the deferrals in the places of an item.
type Deferrals interface {
	Deferral(item *Item, of Place) Deferral
}

// Undeferred returns the item that is to start when Next has just returned item and something may defer it. If
// nothing does, that is item. If its lane was deferred for too long, it is the earliest item of the lane, and
// overdue is true. If only the class was deferred for so long, it is the earliest of the class in the lane.
// Otherwise Undeferred bars the lane, or the class in the lane, and returns nil; again is when that may change.
func (b *Board) Undeferred(item *Item, by Deferrals, barred *Bars, now int64) (_ *Item, overdue bool, again int64) {
	first := b.Earliest(item, false)
	for of := Everywhere; of <= InClass; of++ {
		if of == InClass && !overdue {
			first = b.Earliest(item, true)
		}
		d := by.Deferral(first, of)
		if !d.Holds {
			continue
		}
		until := d.Until(first)
		if until <= now {
			overdue = true
			continue
		}
		if of == InClass {
			barred.Class(item.Lane, first.Class)
		} else {
			barred.Lane(item.Lane)
		}
		return nil, false, min(d.Expires, until, b.Soonest())
	}
	if overdue {
		item = first
	}
	return item, overdue, never
}

// Try sets the limit of a class. While the class is on trial, at most so many of its items run.
func (b *Board) Try(class uint8, limit int, trial bool, trials int) {
	if trial && (limit == 0 || limit > trials) {
		limit = trials
	}
	b.SetLimit(class, limit)
}
