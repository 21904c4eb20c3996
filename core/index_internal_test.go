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

// A few that stay for long, among many that pass, end up in the overflow and are
// found there.
func TestIndexOverflow(t *testing.T) {
	var x index
	old := &Operation{id: 1}
	x.put(old)
	x.put(&Operation{id: 1 + 64})
	x.put(&Operation{id: 1 + 128})
	if x.get(1) != old || x.get(1+64) == nil || x.get(1+128) == nil || x.get(1+192) != nil {
		t.Error("operations whose ids share their low bits are mixed up")
	}
	x.remove(old)
	if x.get(1) != nil || x.get(1+64) == nil || x.get(1+128) == nil {
		t.Error("removing one hid the others")
	}
}
