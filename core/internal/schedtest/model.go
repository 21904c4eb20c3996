// Package schedtest has a simple model of what a scheduler promises. The tests of the board and of the
// engine compare with it.
package schedtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// A BoardModel does what a scheduler promises in the simplest way: pending
// operations are a slice, and every question searches it.
type BoardModel[T Placed] struct {
	Limits  []int // limit of each lane; 0: none
	Classes []int // limit of each class; the first is for items without a class
	PerKey  int   // 0: there are no keys
	Ageing  int64 // 0: never

	Pending, Running []T
	Suspended        []T // keep their key
	Back             []T // suspended operations that want their slots back, in order
	Waiting          []T // operations that wait for room: they come last in their key, and in their lane and class

	wanted   map[T]int64    // since when each operation in Back waits
	Rates    []ModelRate[T] // by class
	KeyRates *meters.Meters // nil: none
	keys     map[string]*meters.Buckets
	parked   map[string]int64 // keys that lack tokens, with the time at which they get them
	changed  []string         // keys that Advance has to look at

	turns    [][]modelTurn[T] // for each lane the turns whose key is free, the next turn first
	sinceAge int              // starts since an operation was chosen for its age
}

// ModelRate is the rates of a class.
type ModelRate[T Placed] struct {
	meters.Meters
	meters.Buckets
	older    T   // the operation that is next because of its age
	sinceAge int // starts since an operation was chosen for its age
}

// modelTurn is the turn of a key with operations that are pending or wait for room, or the turn of
// an operation without a key.
type modelTurn[T Placed] struct {
	key   string
	waits bool
	only  T
}

// Placed is what a scheduler needs to know of an operation.
type Placed interface {
	comparable
	Place() (lane, class int, key string, enqueued int64)
	Cost() int64
}

func NewBoardModel[T Placed](limits, classes []int, perKey int, ageing int64) *BoardModel[T] {
	m := &BoardModel[T]{Limits: limits, Classes: classes, PerKey: perKey, Ageing: ageing, wanted: map[T]int64{}, turns: make([][]modelTurn[T], len(limits)), sinceAge: 4}
	for range classes {
		m.Rates = append(m.Rates, ModelRate[T]{sinceAge: 4})
	}
	m.keys, m.parked = make(map[string]*meters.Buckets), make(map[string]int64)
	return m
}

// SetRates sets the rates of a class.
func (m *BoardModel[T]) SetRates(class int, now int64, calls, cost meters.Rate) {
	r := &m.Rates[class]
	if !r.Limited() {
		r.sinceAge = 4
	}
	r.Set(&r.Buckets, now, calls, cost)
}

// SetKeyRates sets the rates of keys.
func (m *BoardModel[T]) SetKeyRates(now int64, calls, cost meters.Rate) {
	if rates := meters.Start(now, calls, cost); rates.Limited() && m.PerKey > 0 {
		m.KeyRates = &rates
	}
}

func takes[T Placed](o T) meters.Tokens { return meters.Tokens{1, o.Cost()} }

func asOf[T Placed](o T, now int64) int64 { return max(now-int64(20*time.Millisecond), enqueuedOf(o)) }

// Due is the time at which the class of o has tokens for o.
func (m *BoardModel[T]) Due(o T, now int64) int64 {
	r := &m.Rates[classOf(o)]
	return r.Due(&r.Buckets, takes(o), asOf(o, now))
}

// has reports whether the class of o has tokens for o.
func (m *BoardModel[T]) has(o T, now int64) bool { return m.Due(o, now) <= now }

// rated reports whether o has a key with rates.
func (m *BoardModel[T]) rated(o T) bool { return m.KeyRates != nil && keyOf(o) != "" }

// KeyDue is the time at which the key of o has tokens for o.
func (m *BoardModel[T]) KeyDue(o T, now int64) int64 {
	if !m.rated(o) {
		return now
	}
	return m.KeyRates.Due(m.bucketsOf(keyOf(o)), takes(o), asOf(o, now))
}

func (m *BoardModel[T]) bucketsOf(key string) *meters.Buckets {
	if m.keys[key] == nil {
		m.keys[key] = new(meters.Buckets)
	}
	return m.keys[key]
}

// Charge takes or gives back tokens of the class and the key of o.
func (m *BoardModel[T]) Charge(o T, n meters.Tokens, now int64) {
	m.Advance(now)
	defer m.Advance(now)
	r := &m.Rates[classOf(o)]
	if r.Charge(&r.Buckets, n, now); m.rated(o) {
		m.KeyRates.Charge(m.bucketsOf(keyOf(o)), n, now)
		m.change(keyOf(o))
	}
}

func (m *BoardModel[T]) change(key string) {
	if !slices.Contains(m.changed, key) {
		m.changed = append(m.changed, key)
	}
}

// Advance lets keys that have got tokens join the turns, in the order in which they got
// them. Then come the keys for which something has changed. It takes turns from keys that
// lack tokens.
func (m *BoardModel[T]) Advance(now int64) {
	var due []string
	for key, at := range m.parked {
		if at <= now {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.parked[a], m.parked[b]), cmp.Compare(a, b))
	})
	for _, key := range append(due, m.changed...) {
		m.settle(key, now)
	}
	m.changed = nil
}

func (m *BoardModel[T]) settle(key string, now int64) {
	var none T
	delete(m.parked, key)
	if !slices.ContainsFunc(slices.Concat(m.Pending, m.Waiting, m.Running, m.Suspended), func(o T) bool { return keyOf(o) == key }) {
		if m.KeyRates.Full(m.bucketsOf(key), now) <= now {
			delete(m.keys, key)
		}
		return
	}
	free := m.free(key)
	for lane := range m.turns {
		turn := modelTurn[T]{key: key}
		first := m.of(lane, turn)
		if first == none {
			turn.waits = true
			first = m.of(lane, turn)
		}
		if first != none && free {
			if at := m.KeyDue(first, now); at > now {
				free, m.parked[key] = false, at
			}
		}
		has := slices.Contains(m.turns[lane], turn)
		switch {
		case !free:
			m.turns[lane] = drop(m.turns[lane], turn)
		case first != none && !has:
			m.turns[lane] = append(m.turns[lane], turn)
		}
	}
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

// InLane is how many operations of the list are in the lane.
func (m *BoardModel[T]) InLane(list []T, lane int) int {
	return count(list, func(o T) bool { return laneOf(o) == lane })
}

// InClass is how many operations of the list are in the class.
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

// Oldest is the oldest operation of the lane and class, or nil.
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

// of is the operation that starts in the lane at this turn, or nil.
func (m *BoardModel[T]) of(lane int, turn modelTurn[T]) (first T) {
	for _, o := range slices.Concat(m.Pending, m.Waiting) {
		if laneOf(o) == lane && m.turnOf(o) == turn {
			return o
		}
	}
	return first
}

// free reports whether one more operation of the key may run.
func (m *BoardModel[T]) free(key string) bool {
	running := count(slices.Concat(m.Running, m.Suspended), func(o T) bool { return keyOf(o) == key })
	return m.PerKey == 0 || key == "" || running < m.PerKey
}

// LaneFits reports whether one more operation of the lane may run.
func (m *BoardModel[T]) LaneFits(lane int) bool {
	return m.Limits[lane] == 0 || m.InLane(m.Running, lane) < m.Limits[lane]
}

// ClassFits reports whether one more operation of the class may run.
func (m *BoardModel[T]) ClassFits(class int) bool {
	return m.Classes[class] == 0 || m.InClass(m.Running, class) < m.Classes[class]
}

// Fits reports whether the lane and the class of o let it start or go on.
func (m *BoardModel[T]) Fits(o T) bool { return m.LaneFits(laneOf(o)) && m.ClassFits(classOf(o)) }

// candidates are the operations whose keys and classes let them start in the lane, in the
// order of turns.
func (m *BoardModel[T]) candidates(lane int) (all []T) {
	for _, turn := range m.turns[lane] {
		if o := m.of(lane, turn); m.ClassFits(classOf(o)) {
			all = append(all, o)
		}
	}
	return all
}

// head is the next candidate of the lane and class. It is an operation that waits for room only if none is pending.
func (m *BoardModel[T]) head(lane, class int) (head T) {
	could := slices.DeleteFunc(m.candidates(lane), func(o T) bool { return classOf(o) != class })
	if i := slices.IndexFunc(could, func(o T) bool { return !m.waits(o) }); i >= 0 {
		return could[i]
	}
	if len(could) > 0 {
		return could[0]
	}
	return head
}

// allowed are the heads of a class, in lanes that are not barred, that may take tokens and have enough.
func (m *BoardModel[T]) allowed(class int, now int64, barred func(lane, class int) bool) (allowed []T) {
	var none T
	var heads []T // the highest lane first
	for lane := range m.turns {
		if o := m.head(lane, class); o != none && m.LaneFits(lane) && !barred(lane, class) {
			heads = append(heads, o)
		}
	}
	r := &m.Rates[class]
	r.older = none
	if len(heads) > 0 && m.Ageing > 0 && r.sinceAge >= 3 && r.Limited() {
		oldest := heads[0]
		for _, o := range heads[1:] {
			if now-enqueuedOf(o) >= m.Ageing && enqueuedOf(o) < enqueuedOf(oldest) {
				oldest, r.older = o, o
			}
		}
	}
	if r.older != none && !m.has(r.older, now) {
		return nil
	}
	for _, o := range heads {
		if m.has(o, now) {
			allowed = append(allowed, o)
		} else if r.older == none {
			break // operations of lower lanes have to wait
		}
	}
	return allowed
}

// Next is the next operation to start, in a lane and class that are not barred, or nil. It
// also says whether its age is the reason.
func (m *BoardModel[T]) Next(now int64, barred func(lane, class int) bool) (next T, aged bool) {
	var none T
	firsts := make([]T, len(m.turns)) // of the lanes
	for class := range m.Classes {
		for _, o := range m.allowed(class, now, barred) {
			if first := &firsts[laneOf(o)]; *first == none || m.turn(o) < m.turn(*first) {
				*first = o
			}
		}
	}
	heads := slices.DeleteFunc(firsts, func(o T) bool { return o == none })
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

// turn is the place of o in the turns of its lane.
func (m *BoardModel[T]) turn(o T) int { return slices.Index(m.turns[laneOf(o)], m.turnOf(o)) }

// Earliest is the oldest operation that could start in the lane of next. If several are equally old, or without
// keys, it is the operation whose turn is next. If sameClass is set, it has the class of next.
func (m *BoardModel[T]) Earliest(next T, sameClass bool, now int64, barred func(lane, class int) bool) (earliest T) {
	if m.PerKey == 0 {
		return next
	}
	var none T
	could := m.candidates(laneOf(next))
	for class := range m.Classes {
		open := slices.ContainsFunc(m.allowed(class, now, barred), func(o T) bool { return laneOf(o) == laneOf(next) })
		if !open || sameClass && class != classOf(next) {
			could = slices.DeleteFunc(could, func(o T) bool { return classOf(o) == class })
		}
	}
	for _, o := range could {
		if m.has(o, now) && (earliest == none || enqueuedOf(o) < enqueuedOf(earliest)) {
			earliest = o
		}
	}
	return earliest
}

// Wait is Push for an operation that waits for room.
func (m *BoardModel[T]) Wait(o T) {
	m.Advance(enqueuedOf(o))
	m.Waiting = append(m.Waiting, o)
	m.update(o)
	m.Advance(enqueuedOf(o))
}

func (m *BoardModel[T]) Push(o T) {
	m.Advance(enqueuedOf(o))
	m.Pending = append(m.Pending, o)
	m.update(o)
	m.Advance(enqueuedOf(o))
}

func (m *BoardModel[T]) Start(o T, aged bool, now int64) {
	m.Advance(now)
	defer m.Advance(now)
	if m.sinceAge++; aged {
		m.sinceAge = 0
	}
	r, at := &m.Rates[classOf(o)], m.Due(o, now)
	if m.rated(o) {
		at = max(at, m.KeyDue(o, now))
		m.KeyRates.Book(m.bucketsOf(keyOf(o)), takes(o), asOf(o, now), at)
	}
	r.Book(&r.Buckets, takes(o), asOf(o, now), at)
	if r.sinceAge++; aged || r.older == o {
		r.sinceAge = 0
	}
	m.turns[laneOf(o)] = drop(m.turns[laneOf(o)], m.turnOf(o)) // others' turn
	m.takeOut(o)
	m.Running = append(m.Running, o)
	m.update(o)
}

func (m *BoardModel[T]) takeOut(o T) {
	m.Pending, m.Waiting = drop(m.Pending, o), drop(m.Waiting, o)
}

func (m *BoardModel[T]) Finish(o T, now int64) {
	m.Advance(now)
	defer m.Advance(now)
	if slices.Contains(m.Running, o) {
		m.Running = drop(m.Running, o)
	} else {
		m.Suspended, m.Back = drop(m.Suspended, o), drop(m.Back, o)
	}
	m.update(o)
}

func (m *BoardModel[T]) Suspend(o T) {
	m.Running = drop(m.Running, o)
	m.Suspended = append(m.Suspended, o)
}

// Want says that a suspended operation wants its slots back.
func (m *BoardModel[T]) Want(o T, now int64) {
	m.Back = append(m.Back, o)
	m.wanted[o] = now
}

// First is the operation of Back that goes on before pending operations of the lane: the first of the highest lane, or an
// old one of a lower lane.
func (m *BoardModel[T]) First(now int64, before int) (first T, aged bool) {
	var none T
	heads := make([]T, len(m.Limits))
	for _, o := range m.Back {
		if lane := laneOf(o); heads[lane] == none && m.Fits(o) {
			heads[lane] = o
		}
	}
	for lane, o := range heads {
		if o != none && lane <= before {
			return o, false
		}
	}
	for _, o := range heads {
		if o != none && m.Ageing > 0 && m.sinceAge >= 3 && now-m.wanted[o] >= m.Ageing && (first == none || m.wanted[o] < m.wanted[first]) {
			first = o
		}
	}
	return first, first != none
}

func (m *BoardModel[T]) Resume(o T, aged bool) {
	if aged {
		m.sinceAge = 0
	}
	m.Suspended, m.Back = drop(m.Suspended, o), drop(m.Back, o)
	m.Running = append(m.Running, o)
}

func (m *BoardModel[T]) Remove(o T, now int64) {
	m.Advance(now)
	defer m.Advance(now)
	if turn := m.turnOf(o); turn.waits && m.of(laneOf(o), turn) == o {
		m.turns[laneOf(o)] = drop(m.turns[laneOf(o)], turn) // the next turn of the key comes last
	}
	m.takeOut(o)
	m.update(o)
}

// update adds the key of o, or o itself, at the end of the turns in which it can start now,
// and removes it from the turns in which it cannot.
func (m *BoardModel[T]) update(o T) {
	var none T
	turn, free := m.turnOf(o), m.free(keyOf(o))
	if m.rated(o) {
		m.change(keyOf(o))
	}
	for lane := range m.turns {
		could := free
		for _, turn.waits = range [...]bool{false, true} {
			is, has := could && m.of(lane, turn) != none, slices.Contains(m.turns[lane], turn)
			switch {
			case is && !has && m.rated(o): // when it has tokens
			case is && !has:
				m.turns[lane] = append(m.turns[lane], turn)
			case has && !is:
				m.turns[lane] = drop(m.turns[lane], turn)
			}
			could = could && !is // no waiting operation goes first
		}
	}
}

func drop[E comparable](list []E, e E) []E {
	if i := slices.Index(list, e); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	return list
}
