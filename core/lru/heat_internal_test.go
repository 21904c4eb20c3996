package lru

import (
	"sync/atomic"
	"testing"
)

// The count goes up to twice HotAfter, and each pass halves it. So a popular entry stays
// hot for one pass.
func TestHeatCools(t *testing.T) {
	h := newHeat(5)
	var uses atomic.Uint64
	uses.Store(1)
	warmed := 0
	for i := 2; i <= 100; i++ {
		hot, now := h.use(&uses)
		if hot != (i >= 5) {
			t.Errorf("hot after %d accesses: %v", i, hot)
		}
		if now {
			warmed++
		}
	}
	if warmed != 1 || !used(&uses) {
		t.Errorf("warmed %d times, used %v", warmed, used(&uses))
	}
	for i, want := range []bool{false, true, false} { // 10, 5, 2, 1
		if cooled := h.pass(&uses); cooled != want || used(&uses) {
			t.Errorf("pass %d: cooled %v, used %v", i, cooled, used(&uses))
		}
	}
	if hot, _ := h.use(&uses); hot || !used(&uses) {
		t.Errorf("hot %v, used %v after a use", hot, used(&uses))
	}
	rest(&uses)
	if used(&uses) {
		t.Error("used after a rest")
	}
	if n := leave(&uses); n != 2 {
		t.Errorf("left with %d uses", n)
	}
	if hot, warmed := h.use(&uses); hot || warmed || uses.Load() != leftMark {
		t.Errorf("uses of what has left: %x", uses.Load())
	}
}
