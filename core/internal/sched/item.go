package sched

import (
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// An Item is what the board and the window know of an operation. They link items in lists, so an
// item is in one list at a time.
type Item struct {
	next, prev *Item // neighbours in the list it is in
	Enqueued   int64
	Value      int64  // until the start, its cost in tokens; then its tickets, if its class has shadows; see also [Board.Want]; the window keeps the time of the end here
	turn       *turn  // with a key, while it is pending, running or suspended: see Push
	number     uint32 // with lanes, keys or classes: its place in the order of its lane
	State      uint8  // for the owner, and for the window
	Flags      Flags
	Lane       uint8
	Class      uint8 // 0: none
}

// Flags are Roomless, and flags of the owner.
type Flags uint8

// Roomless says that an item has not been accepted: it waits for room in its queue.
const Roomless Flags = 1

// Key is the key by which the board orders an item from Push to Finish or Remove. "" is none.
func (item *Item) Key() string {
	if item.turn == nil {
		return ""
	}
	return item.turn.key.text
}

// Next is the next item of the list that the item is in, or nil.
func (item *Item) Next() *Item { return item.next }

// takes is what an item takes when it starts.
func (item *Item) takes() meters.Tokens { return meters.Tokens{1, item.Value} }

// asOf is the time from which tokens that come are for the item: it could have started with them.
func (item *Item) asOf(now int64) int64 { return max(now-maxLate, item.Enqueued) }

// never is the time of what does not come.
const never = math.MaxInt64

// maxLate is how late an item may start and still count as started when its tokens came.
// Timers are late. Without this, a bucket with a small burst would overflow meanwhile, and a high
// rate would not be reached.
const maxLate = int64(20 * time.Millisecond)

// before reports whether the turn of the item comes before the turn of other, in the same lane.
func (item *Item) before(other *Item) bool { return int32(item.number-other.number) < 0 }

// List links items. The zero List is empty.
type List struct {
	head, tail *Item
	n          int
}

// First is the first item, or nil.
func (l *List) First() *Item { return l.head }

// Len is the number of items.
func (l *List) Len() int { return l.n }

// Push adds an item at the end.
func (l *List) Push(item *Item) {
	l.link(l.tail, item)
	item.next, l.tail = nil, item
	l.n++
}

// insert puts an item before another one, or, if that is nil, at the end.
func (l *List) insert(item, before *Item) {
	last := l.tail
	if before != nil {
		last = before.prev
	}
	l.link(last, item)
	l.link(item, before)
	l.n++
}

// Remove takes out an item, which is in this list.
func (l *List) Remove(item *Item) {
	l.link(item.prev, item.next)
	item.prev, item.next = nil, nil
	l.n--
}

// link makes neighbours of two items; nil stands for the end of the list.
func (l *List) link(item, next *Item) {
	if item == nil {
		l.head = next
	} else {
		item.next = next
	}
	if next == nil {
		l.tail = item
	} else {
		next.prev = item
	}
}

// AppendTo appends the items to a slice.
func (l *List) AppendTo(all []*Item) []*Item {
	for item := l.head; item != nil; item = item.next {
		all = append(all, item)
	}
	return all
}

// line is a list in which the items that wait for room come last.
type line struct {
	List
	waits *Item // the first that waits for room, or nil
}

func (l *line) push(item *Item) {
	if item.Flags&Roomless != 0 && l.waits == nil {
		l.waits = item
	} else if item.Flags&Roomless == 0 && l.waits != nil {
		l.insert(item, l.waits)
		return
	}
	l.List.Push(item)
}

func (l *line) remove(item *Item) {
	if l.waits == item {
		l.waits = item.next
	}
	l.List.Remove(item)
}

// unshift puts an item in front of all others; none of them may come before it.
func (l *line) unshift(item *Item) {
	if item.Flags&Roomless != 0 {
		l.waits = item
	}
	l.insert(item, l.head)
}
