package core

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
)

// window remembers the newest finished operations, bounded by count and by age since
// they finished. Failed operations have a separate bound, so that others do not push
// them out. It is a plain data structure: the caller passes the time and handles
// evictions.
//
// A pinned operation is not evicted. When its turn comes it is moved aside, so that it is
// looked at only once. It is evicted when its last pin goes.
type window struct {
	maxAge   int64 // 0: no limit
	finished share // all but the failed ones
	failed   share
	aside    opList // operations that only a pin keeps
	pinned   int    // operations with pins, of any status
}

// share is a part of the window with its own bound.
type share struct {
	limit int // operations kept, pinned ones aside
	opList
}

// of returns the share of an operation that is not aside.
func (w *window) of(o *Operation) *share {
	if o.status() == StatusFailed {
		return &w.failed
	}
	return &w.finished
}

// add takes in an operation that has just finished.
func (w *window) add(o *Operation) { w.of(o).push(o) }

// oldest returns when the oldest operation that is not aside finished.
func (w *window) oldest() (at int64, ok bool) {
	for _, s := range [...]*share{&w.finished, &w.failed} {
		if o := s.head; o != nil && (!ok || o.sched.Value < at) {
			at, ok = o.sched.Value, true
		}
	}
	return at, ok
}

// evict removes and returns an operation that is too old or one too many, or nil.
func (w *window) evict(now int64) *Operation {
	for _, s := range [...]*share{&w.finished, &w.failed} {
		for o := s.head; o != nil && (s.n > s.limit || w.maxAge > 0 && o.sched.Value <= now-w.maxAge); o = s.head {
			s.remove(o)
			if !o.pinned() {
				return o
			}
			o.sched.Flags |= aside
			w.aside.push(o)
		}
	}
	return nil
}

// remove takes a finished operation out, pinned or not.
func (w *window) remove(o *Operation) {
	if o.pinned() {
		w.pinned--
	}
	if o.sched.Flags&aside != 0 {
		w.aside.remove(o)
	} else {
		w.of(o).remove(o)
	}
}

// any returns a finished operation, or nil when there is none.
func (w *window) any() *Operation {
	for _, l := range [...]*opList{&w.finished.opList, &w.failed.opList, &w.aside} {
		if l.head != nil {
			return l.head
		}
	}
	return nil
}

// len is the number of finished operations in the window.
func (w *window) len() int { return w.finished.n + w.failed.n + w.aside.n }

// pin adds a pin to an operation, unless limit operations are pinned already.
func (w *window) pin(o *Operation, limit int) bool {
	d := o.details()
	if d.pins == 0 {
		if w.pinned >= limit {
			return false
		}
		w.pinned++
	}
	d.pins++
	return true
}

// unpin takes a pin away and reports whether the operation is to be evicted now.
func (w *window) unpin(o *Operation) (evict bool) {
	d := o.rare.Load()
	d.pins--
	if d.pins > 0 {
		return false
	}
	w.pinned--
	if o.sched.Flags&aside != 0 {
		w.aside.remove(o)
	}
	return o.sched.Flags&aside != 0
}

// echoes remember operations that have left the window, bounded by count and age.
type echoes struct {
	fifo.Queue[echo]
	limit  int
	maxAge int64
}

// echo does not refer to its operation, and so to its item, result and context.
type echo struct {
	Past
	status Status
	err    error
	at     int64
}

// add remembers an operation that has been evicted, with what its owner was. There is room.
func (e *echoes) add(o *Operation, last *Past, now int64) {
	if e.limit > 0 {
		p := e.Push() // a whole echo that is copied costs more
		p.Past, p.status, p.err, p.at = *last, o.status(), o.err, now
	}
}

// makeRoom makes room for one more. It returns the owner of the echo that had to go.
func (e *echoes) makeRoom(now int64) (spent Past) {
	e.expire(now)
	if e.N > 0 && e.N == e.limit {
		spent = e.Get(0).Past
		e.Drop()
	}
	return spent
}

func (e *echoes) expire(now int64) {
	for e.N > 0 && e.maxAge > 0 && e.Get(0).at <= now-e.maxAge {
		e.Drop()
	}
}

// index finds operations by id, and walks them in that order. Ids come in ascending
// order and in blocks, so the live ones are close together: they are kept in pages of
// one block each, which are dropped when they are empty.
type index struct {
	pages  []*page     // ascending; the slice's spare capacity has empty pages
	newest OperationID // highest id that was ever put
}

// page holds the operations of a block of ids.
type page struct {
	first      OperationID // of the block
	n          int
	operations [idBlock]*Operation
}

// pageOf returns the first id of the page of id.
func pageOf(id OperationID) OperationID { return id - (id-1)%idBlock }

// find returns the place of the page of id, or the place of the next page if it is not
// there.
func (x *index) find(id OperationID) (at int, found bool) {
	if last := len(x.pages) - 1; last >= 0 { // usually no page is missing before the last
		at = last - int((x.pages[last].first-pageOf(id))/idBlock)
		if uint(at) <= uint(last) && x.pages[at].first == pageOf(id) { // int may have 32 bits
			return at, true
		}
	}
	return slices.BinarySearchFunc(x.pages, pageOf(id), func(p *page, first OperationID) int { return cmp.Compare(p.first, first) })
}

func (x *index) get(id OperationID) *Operation {
	if at, found := x.find(id); found {
		return x.pages[at].operations[(id-1)%idBlock]
	}
	return nil
}

// put adds an operation whose id is greater than all that were put before.
func (x *index) put(o *Operation) {
	last := len(x.pages) - 1
	if last < 0 || x.pages[last].first != pageOf(o.owner.ID) {
		x.pages, last = append(x.pages, x.empty()), last+1
		x.pages[last].first = pageOf(o.owner.ID)
	}
	x.pages[last].operations[(o.owner.ID-1)%idBlock] = o
	x.pages[last].n++
	x.newest = o.owner.ID
}

// owners yields the owners of all operations.
func (x *index) owners(yield func(*Owner) bool) {
	for _, p := range x.pages {
		for _, o := range p.operations {
			if o != nil && !yield(&o.owner) {
				return
			}
		}
	}
}

func (x *index) empty() *page {
	if n := len(x.pages); n < cap(x.pages) {
		if p := x.pages[:n+1][n]; p != nil {
			return p
		}
	}
	return new(page)
}

func (x *index) remove(o *Operation) {
	at, _ := x.find(o.owner.ID)
	p := x.pages[at]
	p.operations[(o.owner.ID-1)%idBlock] = nil
	if p.n--; p.n > 0 {
		return
	}
	last := len(x.pages) - 1
	copy(x.pages[at:], x.pages[at+1:])
	x.pages[last] = p
	if x.pages = x.pages[:last]; max(keptPages, 4*last) < cap(x.pages) {
		x.pages = slices.Clone(x.pages)
	}
}

// keptPages is how many empty pages an almost empty index keeps at most. They take at most
// 34 KB. With bursts of operations, they are not allocated again.
const keptPages = 64

// some returns the first page with an id in a range; with back set, the last one.
func (x *index) some(from, to OperationID, back bool) (p page, found bool) {
	at, _ := x.find(from)
	if back {
		if at, found = x.find(to); !found {
			at--
		}
	}
	if at < 0 || at >= len(x.pages) || x.pages[at].first > to {
		return page{}, false
	}
	return *x.pages[at], true
}

// Coordinators take ids in blocks, so that they do not contend. A block of ids fills one
// page of an index.
const idBlock = 64
