package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// arrival is an item of a trace. It runs for a time that does not depend on how long it has waited.
type arrival struct {
	at, runs, cost int64
	more           int64 // cost that is charged at its end
}

// traced is an item of a trace that is replayed.
type traced struct {
	Item
	arrival
	started int64 // 0: no room
}

// replay runs a trace with these limits, first in, first out.
func replay(trace []arrival, real Limits, room int, shadow Shadow) (items []traced, use ShadowUse) {
	b := New(Config{Lanes: []int{0}, Classes: []Limits{{}, real}}, 1)
	b.SetShadow(1, shadow, new(List), 1)
	items = make([]traced, len(trace))
	var running []*traced // the last one ends first
	now := int64(1)
	for arrived := 0; ; {
		for item := b.Next(now, nil); item != nil; item = b.Next(now, nil) {
			b.Start(item, now)
			x := (*traced)(unsafe.Pointer(item))
			x.started = now
			i, _ := slices.BinarySearchFunc(running, now+x.runs, func(x *traced, end int64) int { return cmp.Compare(end, x.started+x.runs) })
			running = slices.Insert(running, i, x)
		}
		if arrived > 0 && items[arrived-1].started == 0 && b.Len() > room {
			b.Remove(&items[arrived-1].Item, now)
		}
		tokens, end := b.Soonest(), int64(never)
		if n := len(running); n > 0 {
			end = running[n-1].started + running[n-1].runs
		}
		switch {
		case arrived < len(trace) && trace[arrived].at < min(tokens, end):
			now = trace[arrived].at
			x := &items[arrived]
			x.arrival, x.Item = trace[arrived], Item{Enqueued: now, Value: trace[arrived].cost, Class: 1}
			b.Push(&x.Item, "")
			arrived++
		case end <= tokens && end < never:
			now = end
			x := running[len(running)-1]
			running = running[:len(running)-1]
			if x.more != 0 {
				b.Charge(&x.Item, false, meters.Tokens{0, x.more}, now)
			}
			b.Finish(&x.Item, false, now)
		case tokens < never:
			now = tokens
		default:
			use, _ = b.Shadow(1, never-1)
			return items, use
		}
	}
}

// A shadow and the same limits in force agree on how many items wait, on the longest wait and on how many are refused: for
// limits, rates, costs and all of them, beside no limit in force and beside one that is less strict. They agree exactly;
// if the ends of items charge costs, which come earlier in the shadow, on the counts of one trace within four in a hundred items, and
// on those of all traces within one in a hundred.
func TestShadowLikeLimits(t *testing.T) {
	var waited, refused [4]uint64
	var all, wantAll ShadowUse // of traces whose ends charge
	for seed := range uint64(long.Often(1000, 200)) {
		random := rand.New(rand.NewPCG(seed, 31))
		var strict, loose Limits
		kind := int(seed % 4)
		if kind == 0 || kind == 3 {
			strict.Limit = 1 + random.IntN(8)
			loose.Limit = strict.Limit + random.IntN(8)
		}
		if kind == 1 || kind == 3 {
			strict.Rate = meters.Rate{PerSecond: 50 + 200*random.Float64(), Burst: 1 + random.IntN(20)}
			loose.Rate = meters.Rate{PerSecond: 1.2 * strict.Rate.PerSecond, Burst: 1 + strict.Rate.Burst}
		}
		if kind == 2 || kind == 3 {
			strict.CostRate = meters.Rate{PerSecond: 500 + 2000*random.Float64(), Burst: 10 + random.IntN(200)}
			loose.CostRate = meters.Rate{PerSecond: 1.2 * strict.CostRate.PerSecond, Burst: 1 + strict.CostRate.Burst}
		}
		if random.IntN(2) == 0 {
			loose = Limits{}
		}
		room := 1 << 20
		if random.IntN(2) == 0 && loose == (Limits{}) { // else what is refused in reality is not seen by the shadow
			room = random.IntN(20)
		}
		trace, at, gap := make([]arrival, 1000), int64(1e9), 2e6+10e6*random.Float64()
		for i := range trace {
			if at += int64(random.ExpFloat64() * gap); random.IntN(10) == 0 {
				at += int64(random.IntN(200)) * 1e6
			}
			trace[i] = arrival{at: at, runs: int64(random.ExpFloat64() * 30e6), cost: int64(random.IntN(30))}
			if seed%3 == 0 {
				trace[i].more = int64(random.IntN(20) - 10)
			}
		}
		want, _ := replay(trace, strict, room, Shadow{})
		real, got := replay(trace, loose, 1<<20, Shadow{strict, room})
		var wantUse ShadowUse
		for i := range trace {
			if want[i].started == 0 {
				wantUse.Refused++
			} else if late := want[i].started - real[i].started; late > 0 {
				wantUse.Waited++
				wantUse.Longest = max(wantUse.Longest, late)
			}
		}
		waited[kind] += got.Waited
		refused[kind] += got.Refused
		about := fmt.Sprintf("seed %d, %+v beside %+v, room %d: got %+v, want %+v", seed, strict, loose, room, got, wantUse)
		wantUse.Items = uint64(len(trace))
		if exact := seed%3 != 0; exact && got != wantUse || !near(got.Waited, wantUse.Waited, 40) || !near(got.Refused, wantUse.Refused, 40) {
			t.Error(about)
		} else if !exact {
			all.Waited, all.Refused = all.Waited+got.Waited, all.Refused+got.Refused
			wantAll.Waited, wantAll.Refused = wantAll.Waited+wantUse.Waited, wantAll.Refused+wantUse.Refused
		}
	}
	t.Logf("waited %d, refused %d; with charges %+v, want %+v", waited, refused, all, wantAll)
	if !near(all.Waited, wantAll.Waited, wantAll.Waited/100) || !near(all.Refused, wantAll.Refused, wantAll.Refused/100) {
		t.Errorf("got %+v, want %+v", all, wantAll)
	}
}

// near reports whether two numbers differ by at most that many.
func near(a, b, most uint64) bool { return max(a, b)-min(a, b) <= most }
