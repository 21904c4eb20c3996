package core

import (
	"cmp"
	"slices"
)

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
	if last < 0 || x.pages[last].first != pageOf(o.id) {
		x.pages, last = append(x.pages, x.empty()), last+1
		x.pages[last].first = pageOf(o.id)
	}
	x.pages[last].operations[(o.id-1)%idBlock] = o
	x.pages[last].n++
	x.newest = o.id
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
	at, _ := x.find(o.id)
	p := x.pages[at]
	p.operations[(o.id-1)%idBlock] = nil
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
