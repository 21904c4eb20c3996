package window

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type value struct{ id uint64 }

// The index beside a map.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 20 {
		var x Index[uint64, value]
		model := make(map[uint64]*value)
		var ids []uint64
		next := uint64(round * 1000)
		for step := range 3000 {
			switch n := random.IntN(10); {
			case n < 5:
				next++
				if random.IntN(20) == 0 {
					next += 1 << random.IntN(20) // other coordinators take ids as well
				}
				o := &value{next}
				x.Put(next, o)
				model[next] = o
				ids = append(ids, next)
			case len(ids) > 0:
				i := random.IntN(len(ids))
				if random.IntN(3) > 0 {
					i = random.IntN(1 + len(ids)/10) // mostly old ones
				}
				x.Remove(ids[i])
				delete(model, ids[i])
				ids = slices.Delete(ids, i, i+1)
			}
			if step%100 == 0 {
				checkWalk(t, &x, ids)
			}
			id := random.Uint64N(next + 10)
			if len(ids) > 0 && step%2 == 0 {
				id = ids[random.IntN(len(ids))]
			}
			if got := x.Get(id); got != model[id] {
				t.Fatalf("round %d, step %d: get(%d): got %v, want %v", round, step, id, got, model[id])
			}
		}
		for id, o := range model {
			if x.Get(id) != o {
				t.Fatalf("round %d: get(%d): not found", round, id)
			}
			x.Remove(id)
		}
		if len(x.pages) > 0 || cap(x.pages) > keptPages {
			t.Errorf("round %d: an empty index has %d pages and room for %d", round, len(x.pages), cap(x.pages))
		}
		for _, p := range x.pages[:cap(x.pages)] {
			if p != nil && *p != (Page[uint64, value]{First: p.First}) {
				t.Errorf("round %d: a page that was emptied keeps %v", round, *p)
			}
		}
	}
}

// checkWalk compares the pages, from either end, with the ids that there are.
func checkWalk(t *testing.T, x *Index[uint64, value], want []uint64) {
	t.Helper()
	for _, back := range []bool{false, true} {
		var got []uint64
		from, to := uint64(1), x.Newest()
		for p, found := x.Some(from, to, back); found; p, found = x.Some(from, to, back) {
			var ids []uint64
			for _, o := range p.Values {
				if o != nil {
					ids = append(ids, o.id)
				}
			}
			if len(ids) != p.n || p.n == 0 {
				t.Fatalf("a page of %d operations says that it has %d", len(ids), p.n)
			}
			if from = p.First + Block; back {
				from, to = 1, p.First-1
				slices.Reverse(ids)
			}
			got = append(got, ids...)
		}
		if back {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("back %t: got %d operations, want %d in order", back, len(got), len(want))
		}
	}
}

// The operations that live are close together, so that an index of constant size
// serves a stream of any length, and one that was large is small again.
func TestIndexDoesNotGrowWithTraffic(t *testing.T) {
	for _, most := range []int{200, 50_000} {
		var x Index[uint64, value]
		var live []*value
		for id := uint64(1); id < 200_000; id++ {
			o := &value{id}
			x.Put(id, o)
			if live = append(live, o); len(live) > most || id > 100_000 && len(live) > 200 {
				x.Remove(live[0].id)
				live = live[1:]
			}
			if id > 100_000 && len(live) > 200 {
				x.Remove(live[0].id)
				live = live[1:]
			}
		}
		if len(x.pages) > 5 || cap(x.pages) > keptPages {
			t.Errorf("got %d pages and room for %d for 200 operations", len(x.pages), cap(x.pages))
		}
	}
}
