package window

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// tracked is an item as the model of a window knows it.
type tracked struct {
	item  sched.Item
	pins  int
	aside bool // only a pin keeps it
}

const failed = 7 // a state

// A window beside two slices: the oldest item goes first, failed ones and others have bounds of their own, and a pin keeps
// an item for as long as it is there.
func TestWindow(t *testing.T) {
	for seed := range uint64(long.Often(500, 100)) {
		r := rand.New(rand.NewPCG(seed, 1))
		limits := [2]int{r.IntN(6), r.IntN(3)}
		maxAge, maxPins := int64(r.IntN(2)*30), r.IntN(5)
		w := New(maxAge, limits[0], limits[1], failed)
		var shares [2][]*tracked // the second has the failed ones
		now := int64(1)
		share := func(o *tracked) *[]*tracked {
			if o.item.State == failed {
				return &shares[1]
			}
			return &shares[0]
		}
		for step := range 500 {
			all := slices.Concat(shares[0], shares[1])
			var one *tracked
			if len(all) > 0 {
				one = all[r.IntN(len(all))]
			}
			pinned := len(slices.DeleteFunc(slices.Clone(all), func(o *tracked) bool { return o.pins == 0 }))
			switch n := r.IntN(10); {
			case n < 5:
				o := new(tracked)
				if o.item.Value = now; r.IntN(3) == 0 {
					o.item.State = failed
				}
				w.Add(&o.item)
				*share(o) = append(*share(o), o)
			case n < 6:
				now += r.Int64N(20)
			case one == nil:
			case n < 8:
				ok := w.Pin(&one.item, maxPins)
				if want := one.pins > 0 || pinned < maxPins; ok != want {
					t.Fatalf("seed %d, step %d: Pin: got %v, want %v", seed, step, ok, want)
				}
				if ok {
					one.pins++
				}
			case n < 9 && one.pins > 0:
				one.pins--
				evicted := w.Unpin(&one.item)
				if want := one.pins == 0 && one.aside; evicted != want {
					t.Fatalf("seed %d, step %d: Unpin: got %v, want %v", seed, step, evicted, want)
				}
				if evicted {
					*share(one) = slices.DeleteFunc(*share(one), func(o *tracked) bool { return o == one })
				}
			case n == 9:
				w.Remove(&one.item)
				*share(one) = slices.DeleteFunc(*share(one), func(o *tracked) bool { return o == one })
			}
			var gone []*sched.Item
			for item := w.Evict(now); item != nil; item = w.Evict(now) {
				gone = append(gone, item)
			}
			var want []*sched.Item
			for i, list := range shares {
				n := len(list)
				shares[i] = slices.DeleteFunc(list, func(o *tracked) bool {
					n-- // newer ones that are left
					if !(n >= limits[i] || maxAge > 0 && o.item.Value <= now-maxAge) {
						return false
					}
					if o.pins == 0 {
						want = append(want, &o.item)
					}
					o.aside = true
					return o.pins == 0
				})
			}
			if !slices.Equal(gone, want) {
				t.Fatalf("seed %d, step %d: %d items were evicted, want %d", seed, step, len(gone), len(want))
			}
			if n := len(shares[0]) + len(shares[1]); w.Len() != n || (w.Any() == nil) != (n == 0) {
				t.Fatalf("seed %d, step %d: got %d items, want %d", seed, step, w.Len(), n)
			}
			oldest, some := int64(0), false
			for _, o := range slices.Concat(shares[0], shares[1]) {
				if !o.aside && (!some || o.item.Value < oldest) {
					oldest, some = o.item.Value, true
				}
			}
			if at, ok := w.Oldest(); at != oldest || ok != some {
				t.Fatalf("seed %d, step %d: Oldest: got %d, %v, want %d, %v", seed, step, at, ok, oldest, some)
			}
		}
	}
}
