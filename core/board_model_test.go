package core

import "slices"

// A BoardModel is what a scheduler promises, in the fewest words: all that is
// pending is a slice, and every question is answered by looking through it. The
// tests of the board compare it with this, and so do those of the engine.
type BoardModel[T Placed] struct {
	Limits  []int // by lane; 0: none
	Classes []int // the same by class, of which the first is that of items without one
	PerKey  int   // 0: there are no keys
	Ageing  int64 // 0: never

	Pending, Running []T
	Suspended        []T // keep their key
	Waiting          []T // for room: they come last in their key, and in their lane and class

	turns    [][]modelTurn[T] // by lane: of which something could start as far as keys go, the next one first
	sinceAge int              // starts since one was chosen for its age
}

// modelTurn is that of a key, for what is pending or waits for room, or of an operation without one.
type modelTurn[T Placed] struct {
	key   string
	waits bool
	only  T
}

// Placed is an operation, as far as a scheduler cares.
type Placed interface {
	comparable
	Place() (lane, class int, key string, enqueued int64)
}

func NewBoardModel[T Placed](limits, classes []int, perKey int, ageing int64) *BoardModel[T] {
	return &BoardModel[T]{Limits: limits, Classes: classes, PerKey: perKey, Ageing: ageing, turns: make([][]modelTurn[T], len(limits)), sinceAge: 4}
}

func laneOf[T Placed](o T) int {
	lane, _, _, _ := o.Place()
	return lane
}

func classOf[T Placed](o T) int {
	_, class, _, _ := o.Place()
	return class
}

func keyOf[T Placed](o T) string {
	_, _, key, _ := o.Place()
	return key
}

func enqueuedOf[T Placed](o T) int64 {
	_, _, _, enqueued := o.Place()
	return enqueued
}

// InLane is how many of the list are in the lane.
func (m *BoardModel[T]) InLane(list []T, lane int) int {
	return count(list, func(o T) bool { return laneOf(o) == lane })
}

// InClass is how many of the list are in the class.
func (m *BoardModel[T]) InClass(list []T, class int) int {
	return count(list, func(o T) bool { return classOf(o) == class })
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, o := range list {
		if is(o) {
			n++
		}
	}
	return n
}

// Oldest is the first to have come into the lane and class, or nil.
func (m *BoardModel[T]) Oldest(lane, class int) (first T) {
	for _, o := range m.Pending {
		if laneOf(o) == lane && classOf(o) == class {
			return o
		}
	}
	return first
}

// turnOf is the turn that an operation waits for.
func (m *BoardModel[T]) turnOf(o T) modelTurn[T] {
	if key := keyOf(o); m.PerKey > 0 && key != "" {
		return modelTurn[T]{key: key, waits: m.waits(o)}
	}
	return modelTurn[T]{only: o}
}

func (m *BoardModel[T]) waits(o T) bool { return slices.Contains(m.Waiting, o) }

// of is what starts in the lane when it is that turn, or nil.
func (m *BoardModel[T]) of(lane int, turn modelTurn[T]) (first T) {
	for _, o := range slices.Concat(m.Pending, m.Waiting) {
		if laneOf(o) == lane && m.turnOf(o) == turn {
			return o
		}
	}
	return first
}

// free reports whether one more of the key may run.
func (m *BoardModel[T]) free(key string) bool {
	running := count(slices.Concat(m.Running, m.Suspended), func(o T) bool { return keyOf(o) == key })
	return m.PerKey == 0 || key == "" || running < m.PerKey
}

// LaneFits reports whether one more of the lane may run.
func (m *BoardModel[T]) LaneFits(lane int) bool {
	return m.Limits[lane] == 0 || m.InLane(m.Running, lane) < m.Limits[lane]
}

// ClassFits reports whether one more of the class may run.
func (m *BoardModel[T]) ClassFits(class int) bool {
	return m.Classes[class] == 0 || m.InClass(m.Running, class) < m.Classes[class]
}

// Fits reports whether o may run, or go on, as far as its lane and its class are concerned.
func (m *BoardModel[T]) Fits(o T) bool { return m.LaneFits(laneOf(o)) && m.ClassFits(classOf(o)) }

// candidates are what could start in the lane as far as keys and classes go, in turn.
func (m *BoardModel[T]) candidates(lane int) (all []T) {
	for _, turn := range m.turns[lane] {
		if o := m.of(lane, turn); m.ClassFits(classOf(o)) {
			all = append(all, o)
		}
	}
	return all
}

// first is the candidate of the lane whose turn is next: one that waits for room only if no other one of its class is pending.
func (m *BoardModel[T]) first(lane int) (first T) {
	could := m.candidates(lane)
	for _, o := range could {
		if !m.waits(o) || !slices.ContainsFunc(could, func(p T) bool { return !m.waits(p) && classOf(p) == classOf(o) }) {
			return o
		}
	}
	return first
}

// Next is what is to start next, of a lane that is not barred, or nil, and whether
// that is because of its age.
func (m *BoardModel[T]) Next(now int64, barred func(lane int) bool) (next T, aged bool) {
	var none T
	var heads []T // of the lanes that may start something, the highest first
	for lane := range m.turns {
		if first := m.first(lane); first != none && !barred(lane) && m.LaneFits(lane) {
			heads = append(heads, first)
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

// Earliest is the operation of the lane whose key and class are free that was enqueued
// first, or nil; of several, and without keys, the one whose turn is next.
func (m *BoardModel[T]) Earliest(lane int) (earliest T) {
	if m.PerKey == 0 {
		return m.first(lane)
	}
	var none T
	for _, o := range m.candidates(lane) {
		if earliest == none || enqueuedOf(o) < enqueuedOf(earliest) {
			earliest = o
		}
	}
	return earliest
}

// Wait is Push of one that waits for room.
func (m *BoardModel[T]) Wait(o T) {
	m.Waiting = append(m.Waiting, o)
	m.update(o)
}

func (m *BoardModel[T]) Push(o T) {
	m.Pending = append(m.Pending, o)
	m.update(o)
}

func (m *BoardModel[T]) Start(o T, aged bool) {
	if m.sinceAge++; aged {
		m.sinceAge = 0
	}
	m.turns[laneOf(o)] = drop(m.turns[laneOf(o)], m.turnOf(o)) // others' turn
	m.takeOut(o)
	m.Running = append(m.Running, o)
	m.update(o)
}

func (m *BoardModel[T]) takeOut(o T) {
	m.Pending, m.Waiting = drop(m.Pending, o), drop(m.Waiting, o)
}

func (m *BoardModel[T]) Finish(o T) {
	if slices.Contains(m.Running, o) {
		m.Running = drop(m.Running, o)
	} else {
		m.Suspended = drop(m.Suspended, o)
	}
	m.update(o)
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
	if turn := m.turnOf(o); turn.waits && m.of(laneOf(o), turn) == o {
		m.turns[laneOf(o)] = drop(m.turns[laneOf(o)], turn) // the next one that waits comes last
	}
	m.takeOut(o)
	m.update(o)
}

// update lets the key of o, or o itself, join the turns, last, where it has come to be
// able to start, and leave those where it cannot.
func (m *BoardModel[T]) update(o T) {
	var none T
	turn, free := m.turnOf(o), m.free(keyOf(o))
	for lane := range m.turns {
		could := free
		for _, turn.waits = range [...]bool{false, true} {
			is, has := could && m.of(lane, turn) != none, slices.Contains(m.turns[lane], turn)
			switch {
			case is && !has:
				m.turns[lane] = append(m.turns[lane], turn)
			case has && !is:
				m.turns[lane] = drop(m.turns[lane], turn)
			}
			could = could && !is // none that waits goes before
		}
	}
}

func drop[E comparable](list []E, e E) []E {
	if i := slices.Index(list, e); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	return list
}
