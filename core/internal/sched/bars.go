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
