package aggregate

import (
	"cmp"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// record keeps the newest facts, bounded by age and number. Facts and retractions come
// on the goroutines that raise and retract them: nearly in the order of Seq, and a fact
// may come after its retraction.
type record struct {
	span     time.Duration
	capacity int

	since time.Time        // no fact raised after this time is missing; zero before begin and after end
	facts []signals.Signal // ordered by Seq, and so by Time
	gone  []uint64         // Seqs of the newest facts that were taken back, ascending
	ended bool
}

// remembered is how many retractions a record keeps.
const remembered = 1024

func (r *record) begin(now time.Time) { r.since = now }

func (r *record) add(s signals.Signal, now time.Time) {
	if _, gone := slices.BinarySearch(r.gone, s.Seq); gone || r.ended {
		return
	}
	i, _ := slices.BinarySearchFunc(r.facts, s.Seq, bySeq)
	r.facts = slices.Insert(r.facts, i, s)
	r.expire(now)
	if len(r.facts) > r.capacity {
		if cut := r.facts[0].Time; cut.After(r.since) {
			r.since = cut
		}
		r.drop(1)
	}
}

func (r *record) takeBack(seq uint64) {
	if i, found := slices.BinarySearch(r.gone, seq); !found {
		r.gone = slices.Insert(r.gone, i, seq)
		r.gone = r.gone[max(0, len(r.gone)-remembered):]
	}
	if i, found := slices.BinarySearchFunc(r.facts, seq, bySeq); found {
		r.facts = slices.Delete(r.facts, i, i+1)
	}
}

func (r *record) expire(now time.Time) {
	n := 0
	for n < len(r.facts) && now.Sub(r.facts[n].Time) >= r.span {
		n++
	}
	r.drop(n)
}

// drop forgets the oldest facts, and lets their payloads be collected.
func (r *record) drop(n int) {
	clear(r.facts[:n])
	r.facts = r.facts[n:]
}

// covered returns for how long, up to now, no fact is missing; at most the span.
func (r *record) covered(now time.Time) time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return min(now.Sub(r.since), r.span)
}

func (r *record) end() { r.since, r.facts, r.gone, r.ended = time.Time{}, nil, nil, true }

func bySeq(s signals.Signal, seq uint64) int { return cmp.Compare(s.Seq, seq) }
