package core

import "slices"

// A BoardModel is what a scheduler promises, in the fewest words: all that is
// pending is a slice, and every question is answered by looking through it. The
// tests of the board compare it with this, and so do those of the engine.
type BoardModel[T Placed] struct {
	Limits []int // by lane; 0: none
	PerKey int   // 0: there are no keys
	Ageing int64 // 0: never

	Pending, Running []T
	Suspended        []T // keep their key

	turns    [][]string // by lane: the keys of which something could start, the next one first
	sinceAge int        // starts since one was chosen for its age
}

// Placed is an operation, as far as a scheduler cares.
type Placed interface {
	comparable
	Place() (lane int, key string, enqueued int64)
}

func NewBoardModel[T Placed](limits []int, perKey int, ageing int64) *BoardModel[T] {
	return &BoardModel[T]{Limits: limits, PerKey: perKey, Ageing: ageing, turns: make([][]string, len(limits)), sinceAge: 4}
}

func laneOf[T Placed](o T) int {
	lane, _, _ := o.Place()
	return lane
}

func keyOf[T Placed](o T) string {
	_, key, _ := o.Place()
	return key
}

func enqueuedOf[T Placed](o T) int64 {
	_, _, enqueued := o.Place()
	return enqueued
}

// InLane is how many of the list are in the lane.
func (m *BoardModel[T]) InLane(list []T, lane int) (n int) {
	for _, o := range list {
		if laneOf(o) == lane {
			n++
		}
	}
	return n
}

// Oldest is the first to have come into the lane, or nil.
func (m *BoardModel[T]) Oldest(lane int) (first T) {
	for _, o := range m.Pending {
		if laneOf(o) == lane {
			return o
		}
	}
	return first
}

// of is the first to have come into the lane with that key, or nil.
func (m *BoardModel[T]) of(lane int, key string) (first T) {
	for _, o := range m.Pending {
		if laneOf(o) == lane && keyOf(o) == key {
			return o
		}
	}
	return first
}

// free reports whether one more of the key may run.
func (m *BoardModel[T]) free(key string) bool {
	running := 0
	for _, o := range slices.Concat(m.Running, m.Suspended) {
		if keyOf(o) == key {
			running++
		}
	}
	return m.PerKey == 0 || running < m.PerKey
}

// LaneFits reports whether one more of the lane may run.
func (m *BoardModel[T]) LaneFits(lane int) bool {
	return m.Limits[lane] == 0 || m.InLane(m.Running, lane) < m.Limits[lane]
}

// Admits reports whether o could start if it came now and nothing else could.
func (m *BoardModel[T]) Admits(o T) bool { return m.LaneFits(laneOf(o)) && m.free(keyOf(o)) }

// Next is what is to start next, of a lane that is not barred, or nil, and whether
// that is because of its age.
func (m *BoardModel[T]) Next(now int64, barred func(lane int) bool) (next T, aged bool) {
	var none T
	var heads []T // of the lanes that may start something, the highest first
	for lane, keys := range m.turns {
		if len(keys) > 0 && !barred(lane) && m.LaneFits(lane) {
			heads = append(heads, m.of(lane, keys[0]))
		}
	}
	if len(heads) == 0 {
		return none, false
	}
	next = heads[0]
	if m.Ageing == 0 || m.sinceAge < 3 {
		return next, false
	}
	for _, o := range heads[1:] {
		if now-enqueuedOf(o) >= m.Ageing && enqueuedOf(o) < enqueuedOf(next) {
			next = o
		}
	}
	return next, next != heads[0]
}

// Earliest is the operation of the lane whose key is free that was enqueued first, or
// nil; of several, the one whose turn is next.
func (m *BoardModel[T]) Earliest(lane int) (earliest T) {
	var none T
	for _, key := range m.turns[lane] {
		if o := m.of(lane, key); earliest == none || enqueuedOf(o) < enqueuedOf(earliest) {
			earliest = o
		}
	}
	return earliest
}

func (m *BoardModel[T]) Push(o T) {
	m.Pending = append(m.Pending, o)
	m.update(keyOf(o))
}

func (m *BoardModel[T]) Start(o T, aged bool) {
	if m.sinceAge++; aged {
		m.sinceAge = 0
	}
	lane, key, _ := o.Place()
	m.Pending = drop(m.Pending, o)
	m.Running = append(m.Running, o)
	m.turns[lane] = drop(m.turns[lane], key) // others' turn
	m.update(key)
}

func (m *BoardModel[T]) Finish(o T) {
	if slices.Contains(m.Running, o) {
		m.Running = drop(m.Running, o)
	} else {
		m.Suspended = drop(m.Suspended, o)
	}
	m.update(keyOf(o))
}

func (m *BoardModel[T]) Suspend(o T) {
	m.Running = drop(m.Running, o)
	m.Suspended = append(m.Suspended, o)
}

func (m *BoardModel[T]) Resume(o T) {
	m.Suspended = drop(m.Suspended, o)
	m.Running = append(m.Running, o)
}

func (m *BoardModel[T]) Remove(o T) {
	m.Pending = drop(m.Pending, o)
	m.update(keyOf(o))
}

// update lets a key join the turns, last, where something of it has come to be able
// to start, and leave those where nothing can.
func (m *BoardModel[T]) update(key string) {
	var none T
	free := m.free(key)
	for lane, keys := range m.turns {
		could, has := free && m.of(lane, key) != none, slices.Contains(keys, key)
		switch {
		case could && !has:
			m.turns[lane] = append(keys, key)
		case has && !could:
			m.turns[lane] = drop(keys, key)
		}
	}
}

func drop[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	return slices.Delete(list, i, i+1)
}
