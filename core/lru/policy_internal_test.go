package lru

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// dullPolicy does the same as policy, with slices, the oldest first.
type dullPolicy struct {
	smallMax, mainMax int
	small, main       []int
	used              map[int]bool
	ghosts            *ghosts // shared with the policy; tested below
	resting           int
}

func (d *dullPolicy) admit(key int) (victim int, ok bool) {
	if d.ghosts.take(hashOf(key)) && (len(d.main) < d.mainMax || len(d.small) == d.smallMax) {
		if victim, evicts, room := d.roomInMain(); room {
			d.main = append(d.main, key)
			return victim, evicts
		}
	}
	if len(d.small) == d.smallMax {
		oldest := d.small[0]
		d.small = d.small[1:]
		d.resting++
		candidate := d.used[oldest] || len(d.main) < d.mainMax || d.resting >= maxRest
		room := false
		if candidate {
			victim, ok, room = d.roomInMain()
		}
		if room {
			d.used[oldest] = false
			d.main = append(d.main, oldest)
		} else {
			victim, ok = oldest, true
			d.ghosts.add(hashOf(oldest))
		}
	}
	d.small = append(d.small, key)
	return victim, ok
}

func (d *dullPolicy) roomInMain() (victim int, evicts, room bool) {
	if len(d.main) < d.mainMax {
		return 0, false, true
	}
	d.resting = 0
	if len(d.main) == 0 {
		return 0, false, false
	}
	oldest := d.main[0]
	d.main = d.main[1:]
	if d.used[oldest] {
		d.used[oldest] = false
		d.main = append(d.main, oldest)
		return 0, false, false
	}
	return oldest, true, true
}

func hashOf(key int) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 }

func TestPolicyAgainstDullPolicy(t *testing.T) {
	for _, capacity := range []int{1, 2, 3, 16, 50, 200} {
		r := rand.New(rand.NewPCG(1, uint64(capacity)))
		h := newHeat(3)
		var p policy[int, int]
		p.init(capacity, h)
		d := dullPolicy{smallMax: p.smallMax, mainMax: p.mainMax, used: map[int]bool{}, ghosts: &ghosts{size: p.ghosts.size}}
		entries := map[int]*entry[int, int]{}
		leaves := func(key int) {
			delete(entries, key)
			delete(d.used, key)
		}
		for step := range long.Often(50_000, 5_000) {
			key := min(r.IntN(2*capacity+1), r.IntN(2*capacity+1))
			e := entries[key]
			switch op := r.IntN(100); {
			case e == nil:
				e = &entry[int, int]{hash: hashOf(key), key: key}
				e.uses.Store(1)
				var got int
				victim := p.admit(e)
				if victim != nil {
					got = victim.key
				}
				want, ok := d.admit(key)
				if (victim != nil) != ok || got != want {
					t.Fatalf("capacity %d, step %d: admit evicts %v, %v, want %v, %v", capacity, step, got, victim != nil, want, ok)
				}
				if ok {
					leaves(want)
				}
				entries[key] = e
			case op < 60:
				h.use(&e.uses)
				d.used[key] = true
			case op < 70:
				e2 := &entry[int, int]{hash: e.hash, key: key}
				e2.uses.Store(e.uses.Load())
				p.in(e).replace(e, e2)
				entries[key] = e2
			case op < 80:
				p.in(e).remove(e)
				d.small = slices.DeleteFunc(d.small, func(k int) bool { return k == key })
				d.main = slices.DeleteFunc(d.main, func(k int) bool { return k == key })
				leaves(key)
			}
			if n := p.small.n + p.main.n; n != len(entries) || n > capacity {
				t.Fatalf("capacity %d: %d entries, want %d", capacity, n, len(entries))
			}
		}
		for _, q := range []struct {
			got  *queue[int, int]
			want []int
		}{{&p.small, d.small}, {&p.main, d.main}} {
			var up, down []int
			for e := q.got.oldest; e != nil; e = e.newer {
				up = append(up, e.key)
			}
			for e := q.got.newest; e != nil; e = e.older {
				down = append(down, e.key)
			}
			slices.Reverse(down)
			if !slices.Equal(up, q.want) || !slices.Equal(down, q.want) || q.got.n != len(q.want) {
				t.Errorf("capacity %d: queue %v, backwards %v, want %v", capacity, up, down, q.want)
			}
		}
	}
}

// Ghosts are remembered for size additions, with few exceptions, and never longer.
func TestGhosts(t *testing.T) {
	for _, size := range []int{1, 10, 100, 10_000} {
		g := ghosts{size: uint32(size)}
		for key := range 10 * size {
			if g.take(hashOf(key)) {
				t.Fatalf("size %d: %d is remembered before it was added", size, key)
			}
			g.add(hashOf(key))
		}
		for key := range 9 * size {
			if g.take(hashOf(key)) {
				t.Fatalf("size %d: %d is remembered for too long", size, key)
			}
		}
		kept := 0
		for key := 9 * size; key < 10*size; key++ {
			if g.take(hashOf(key)) {
				kept++
				if g.take(hashOf(key)) {
					t.Errorf("size %d: %d is there twice", size, key)
				}
			}
		}
		if kept < size*9/10 {
			t.Errorf("size %d: %d remembered", size, kept)
		}
	}
	var none ghosts
	none.add(1)
	if none.take(1) {
		t.Error("ghosts of size 0 remember")
	}
}

// When the count of additions wraps around, old ghosts do not come back.
func TestGhostsWrapAround(t *testing.T) {
	g := ghosts{size: 10, added: 1<<32 - 15}
	for key := range 30 {
		g.add(hashOf(key))
	}
	for key := range 30 {
		if got, want := g.take(hashOf(key)), key >= 20; got != want {
			t.Errorf("%d remembered: %v, want %v", key, got, want)
		}
	}
}

// The count goes up to twice what makes hot and is halved by each pass: a popular
// entry stays hot for one.
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
