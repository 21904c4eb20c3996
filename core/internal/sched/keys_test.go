package sched

import (
	"iter"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

func (t *keyTable) all() iter.Seq[*keyState] {
	return func(yield func(*keyState) bool) {
		for _, k := range t.chains {
			for ; k != nil; k = k.next {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// A table finds the keys that are live, however many there were before. Once none is live, it is small again, and what
// it had is used again or collected.
func TestKeyTable(t *testing.T) {
	var table keyTable
	random := rand.New(rand.NewPCG(1, 2))
	live := map[string]*keyState{}
	for round, peak := range []int{1, 30, 1500, 1500, 20, 1500, 1} {
		for step := 0; step < 4*peak || len(live) > 0; step++ {
			text := strconv.Itoa(random.IntN(peak))
			known := live[text]
			if known != nil && (step > 3*peak || random.IntN(4) == 0) {
				table.release(known)
				delete(live, text)
				continue
			}
			if step > 3*peak {
				continue
			}
			k := table.obtain(text, 1)
			if known != nil && k != known || known == nil && (k.text != text || k.turns[0].key != k) {
				t.Fatalf("key %s: got %+v, want %+v", text, k, known)
			}
			live[text] = k
			if step%peak == 0 {
				n := 0
				for k := range table.all() {
					if n++; live[k.text] != k {
						t.Fatalf("key %q is listed, but not live", k.text)
					}
				}
				if n != len(live) || n != table.n {
					t.Fatalf("got %d keys, %d of them listed, want %d", table.n, n, len(live))
				}
			}
		}
		if n := len(table.chains); n > smallTable {
			t.Fatalf("%d chains without a key", n)
		}
		if got, want := table.idle.Value() != nil, peak == 1500; got != want {
			t.Errorf("round %d: kept for the next burst: got %v, want %v", round, got, want)
		}
		if round != 2 {
			runtime.GC()
			if table.idle.Value() != nil {
				t.Errorf("round %d: the garbage collector left it", round)
			}
		}
	}
}
