package window

import (
	"cmp"
	"iter"
	"slices"
)

// An Index finds values by id, and walks them in that order. Ids begin at 1 and come in ascending
// order and in blocks, so the live ones are close together: they are kept in pages of one block
// each, which are dropped when they are empty. The zero Index is empty.
type Index[K ~uint64, T any] struct {
	pages  []*Page[K, T] // ascending; the slice's spare capacity has empty pages
	newest K             // highest id that was ever put
}

// A Page has the values of a block of ids.
type Page[K ~uint64, T any] struct {
	First  K // of the block
	n      int
	Values [Block]*T
}

// Block is how many ids a page has. A caller that gives out ids in blocks of that size fills one page with
// each.
const Block = 64

// blockOf returns the first id of the block of id.
func blockOf[K ~uint64](id K) K { return id - (id-1)%Block }

// find returns the place of the page of id, or the place of the next page if it is not there.
func (x *Index[K, T]) find(id K) (at int, found bool) {
	if last := len(x.pages) - 1; last >= 0 { // usually no page is missing before the last
		at = last - int((x.pages[last].First-blockOf(id))/Block)
		if uint(at) <= uint(last) && x.pages[at].First == blockOf(id) { // int may have 32 bits
			return at, true
		}
	}
	return slices.BinarySearchFunc(x.pages, blockOf(id), func(p *Page[K, T], first K) int { return cmp.Compare(p.First, first) })
}

// Get returns the value of an id, or nil.
func (x *Index[K, T]) Get(id K) *T {
	if at, found := x.find(id); found {
		return x.pages[at].Values[(id-1)%Block]
	}
	return nil
}

// Put adds a value. Its id is greater than all that were put before.
func (x *Index[K, T]) Put(id K, value *T) {
	last := len(x.pages) - 1
	if last < 0 || x.pages[last].First != blockOf(id) {
		x.pages, last = append(x.pages, x.empty()), last+1
		x.pages[last].First = blockOf(id)
	}
	x.pages[last].Values[(id-1)%Block] = value
	x.pages[last].n++
	x.newest = id
}

func (x *Index[K, T]) empty() *Page[K, T] {
	if n := len(x.pages); n < cap(x.pages) {
		if p := x.pages[:n+1][n]; p != nil {
			return p
		}
	}
	return new(Page[K, T])
}

// Remove takes out the value of an id, which is there.
func (x *Index[K, T]) Remove(id K) {
	at, _ := x.find(id)
	p := x.pages[at]
	p.Values[(id-1)%Block] = nil
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
// 34 KB. With bursts of values, they are not allocated again.
const keptPages = 64

// Newest is the highest id that was ever put.
func (x *Index[K, T]) Newest() K { return x.newest }

// From yields the values from that id on, in the order of their ids.
func (x *Index[K, T]) From(id K) iter.Seq2[K, *T] {
	return func(yield func(K, *T) bool) {
		at, _ := x.find(id)
		for _, p := range x.pages[at:] {
			for i := max(id, p.First) - p.First; i < Block; i++ {
				if value := p.Values[i]; value != nil && !yield(p.First+i, value) {
					return
				}
			}
		}
	}
}

// Some returns a copy of the first page with an id in a range; with back set, of the last one.
func (x *Index[K, T]) Some(from, to K, back bool) (p Page[K, T], found bool) {
	at, _ := x.find(from)
	if back {
		if at, found = x.find(to); !found {
			at--
		}
	}
	if at < 0 || at >= len(x.pages) || x.pages[at].First > to {
		return p, false
	}
	return *x.pages[at], true
}
