package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The index beside a map.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 20 {
		var x index
		model := make(map[OperationID]*Operation)
		var ids []OperationID
		next := OperationID(round * 1000)
		for step := range 3000 {
			switch n := random.IntN(10); {
			case n < 5:
				next++
				if random.IntN(20) == 0 {
					next += 1 << random.IntN(20) // other coordinators take ids as well
				}
				o := &Operation{id: next}
				x.put(o)
				model[next] = o
				ids = append(ids, next)
			case len(ids) > 0:
				i := random.IntN(len(ids))
				if random.IntN(3) > 0 {
					i = random.IntN(1 + len(ids)/10) // mostly old ones
				}
				x.remove(model[ids[i]])
				delete(model, ids[i])
				ids = slices.Delete(ids, i, i+1)
			}
			if x.n != len(model) {
				t.Fatalf("round %d, step %d: got %d operations, want %d", round, step, x.n, len(model))
			}
			id := OperationID(random.Uint64N(uint64(next) + 10))
			if len(ids) > 0 && step%2 == 0 {
				id = ids[random.IntN(len(ids))]
			}
			if got := x.get(id); got != model[id] {
				t.Fatalf("round %d, step %d: get(%d): got %v, want %v", round, step, id, got, model[id])
			}
		}
		for id, o := range model {
			if x.get(id) != o {
				t.Fatalf("round %d: get(%d): not found", round, id)
			}
			x.remove(o)
		}
		if x.n != 0 || x.overflow != nil {
			t.Errorf("round %d: an empty index has %d operations and an overflow of %d", round, x.n, len(x.overflow))
		}
	}
}

// An index that was large is small again when few are left, and finds them.
func TestIndexShrinks(t *testing.T) {
	var x index
	var all []*Operation
	for id := OperationID(1); id <= 100_000; id++ {
		o := &Operation{id: id}
		x.put(o)
		all = append(all, o)
	}
	for i, o := range all[:len(all)-200] {
		x.remove(o)
		if left := all[len(all)-1]; i%1000 == 0 && (x.get(o.id) != nil || x.get(left.id) != left) {
			t.Fatalf("after %d were removed: got %v and %v", i+1, x.get(o.id), x.get(left.id))
		}
	}
	for _, o := range all[len(all)-200:] {
		if x.get(o.id) != o {
			t.Fatalf("get(%d): not found", o.id)
		}
	}
	if len(x.slots) > keptSlots {
		t.Errorf("got %d slots for 200 operations, want at most %d", len(x.slots), keptSlots)
	}
}

// The operations that live are close together, so that an index of constant size
// serves a stream of any length.
func TestIndexDoesNotGrowWithTraffic(t *testing.T) {
	var x index
	var live []*Operation
	for id := OperationID(1); id < 100_000; id++ {
		o := &Operation{id: id}
		x.put(o)
		if live = append(live, o); len(live) > 200 {
			x.remove(live[0])
			live = live[1:]
		}
	}
	if len(x.slots) > 1024 || len(x.overflow) > 0 {
		t.Errorf("got %d slots and an overflow of %d for 200 operations", len(x.slots), len(x.overflow))
	}
}
