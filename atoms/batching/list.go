package batching

import (
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// entry is an item with what is known about it.
type entry[V any] struct {
	next, prev *entry[V] // of the list it is in: of the builder's pending, or waiting
	lot        *lot[V]   // once accepted
	place      int       // in lot.entries
	stage      stage
	called     bool // somebody waits for it in Do
	wanted     bool // somebody still does, or it is for nobody; until it is done
	key        string
	size       int
	at         time.Duration // when it was accepted
	latest     time.Duration // when its lot has to be flushed because of who waits for it; until it is accepted, the deadline of that
	value      V
}

type stage uint8

const (
	stageNew     stage = iota
	stageWaiting       // for room
	stagePending
	stageRunning
	stageDone // or will never be
)

// list is a list of entries in the order in which they came.
type list[V any] struct {
	head, tail *entry[V]
	n          int
}

func (l *list[V]) push(e *entry[V]) {
	if e.prev = l.tail; e.prev != nil {
		e.prev.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.n++
}

func (l *list[V]) remove(e *entry[V]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.next, e.prev = nil, nil
	l.n--
}

// lot is a batch in the making.
type lot[V any] struct {
	number  uint64 // in the order in which they were opened
	group   *group[V]
	state   lotState
	entries []*entry[V] // in order; nil where one was taken out
	n       int         // entries that are not nil
	wanted  int         // of these, how many are wanted
	bytes   int
	due     time.Duration // open: not after the time at which it has to be flushed
	pressed time.Duration // open: when somebody found no room, or never
	slot    int           // open: in the heap; -1 if it is not in it
	reason  Reason
	id      core.OperationID // once sealed, by the shell
	cause   error            // why it was cancelled
}

type lotState uint8

const (
	lotOpen    lotState = iota // takes entries
	lotSealed                  // waits for its turn
	lotRunning                 // being flushed
	lotGone
)

func (l *lot[V]) add(e *entry[V]) {
	e.lot, e.place = l, len(l.entries)
	l.entries = append(l.entries, e)
	l.n++
	e.wanted = true
	l.wanted++
	l.bytes += e.size
}

func (l *lot[V]) remove(e *entry[V]) {
	l.entries[e.place] = nil
	l.n--
	l.unwant(e)
	l.bytes -= e.size
	if len(l.entries) > 2*l.n+16 { // those who come and go leave no trail
		l.compact()
	}
}

func (l *lot[V]) unwant(e *entry[V]) {
	if e.wanted {
		e.wanted = false
		l.wanted--
	}
}

func (l *lot[V]) compact() {
	l.entries = slices.DeleteFunc(l.entries, func(e *entry[V]) bool { return e == nil })
	for i, e := range l.entries {
		e.place = i
	}
}

// when is when an open lot has to be flushed, and why.
func (l *lot[V]) when(delay time.Duration) (time.Duration, Reason) {
	at, reason := never, ReasonDelay
	for first, i := true, 0; i < len(l.entries); i++ {
		e := l.entries[i]
		if e == nil {
			continue
		}
		if first {
			first, at = false, later(e.at, delay)
		}
		if e.latest < at {
			at, reason = e.latest, ReasonDeadline
		}
	}
	if l.pressed < at {
		at, reason = l.pressed, ReasonRoom
	}
	return at, reason
}

// later is at + d, but not after never.
func later(at, d time.Duration) time.Duration {
	if d >= never-at {
		return never
	}
	return at + d
}

// group is what has one key: the lot that is being filled, and how many are on
// their way.
type group[V any] struct {
	key    string
	open   *lot[V] // nil: none
	flying int     // lots that are sealed or running
}

// agenda is the open lots, a heap by due. A lot that is due while its group may not
// have another on its way is taken out, and put back when it may.
type agenda[V any] []*lot[V]

func (a agenda[V]) Len() int { return len(a) }
func (a agenda[V]) Less(i, j int) bool {
	return a[i].due < a[j].due || a[i].due == a[j].due && a[i].number < a[j].number
}

func (a agenda[V]) Swap(i, j int) { a[i], a[j] = a[j], a[i]; a[i].slot, a[j].slot = i, j }
func (a *agenda[V]) Push(x any) {
	l := x.(*lot[V])
	l.slot = len(*a)
	*a = append(*a, l)
}

func (a *agenda[V]) Pop() any {
	last := len(*a) - 1
	l := (*a)[last]
	(*a)[last] = nil
	*a, l.slot = (*a)[:last], -1
	return l
}
