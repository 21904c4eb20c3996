package core

// spares keep the memory of a few facts that no operation and no echo has any more, for the
// next operations.
type spares struct {
	first []*ownFact
	lists [][]ownFact
}

// All spares together take at most 8 KiB.
const (
	maxSpares    = 16
	maxSpareList = 8
)

// single returns the place of one fact.
func (s *spares) single() *ownFact {
	last := len(s.first) - 1
	if last < 0 {
		return new(ownFact)
	}
	f := s.first[last]
	s.first = s.first[:last]
	return f
}

// list returns an empty list.
func (s *spares) list() []ownFact {
	last := len(s.lists) - 1
	if last < 0 {
		return nil
	}
	list := s.lists[last]
	s.lists = s.lists[:last]
	return list
}

// put takes the memory of facts that nobody refers to any more. It keeps nothing that they
// refer to.
func (s *spares) put(f ownFacts) {
	if f.first != nil && len(s.first) < maxSpares {
		*f.first = ownFact{}
		s.first = append(s.first, f.first)
	}
	if d := f.rest; d != nil && cap(d.facts) > 0 {
		list := d.facts
		d.facts, d.from = nil, 0
		if cap(list) <= maxSpareList && len(s.lists) < maxSpares {
			clear(list)
			s.lists = append(s.lists, list[:0])
		}
	}
}
