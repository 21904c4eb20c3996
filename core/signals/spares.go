package signals

// spares keep the memory of a few values, such as facts that no operation and no echo has any
// more, for the next ones.
type spares[T any] struct {
	singles []*T
	lists   [][]T
}

// All spares of a kind together are few: at most 16 single values, and 16 lists of 8.
const (
	maxSpares    = 16
	maxSpareList = 8
)

// single returns the place of one value.
func (s *spares[T]) single() *T {
	last := len(s.singles) - 1
	if last < 0 {
		return new(T)
	}
	v := s.singles[last]
	s.singles = s.singles[:last]
	return v
}

// list returns an empty list.
func (s *spares[T]) list() []T {
	last := len(s.lists) - 1
	if last < 0 {
		return nil
	}
	list := s.lists[last]
	s.lists = s.lists[:last]
	return list
}

// put takes memory that nobody refers to any more. It keeps nothing that the values refer to.
func (s *spares[T]) put(single *T, list []T) {
	if single != nil && len(s.singles) < maxSpares {
		*single = *new(T)
		s.singles = append(s.singles, single)
	}
	if n := cap(list); n > 0 && n <= maxSpareList && len(s.lists) < maxSpares {
		clear(list)
		s.lists = append(s.lists, list[:0])
	}
}
