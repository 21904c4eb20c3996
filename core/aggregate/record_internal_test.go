package aggregate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// model is a record that keeps, and searches, everything that it has got.
type model struct {
	span, capacity, since int // seconds
	facts                 map[uint64]int
	gone, cut             map[uint64]bool
}

func (m *model) visible(now int) []uint64 {
	var seqs []uint64
	for seq, at := range m.facts {
		if now-at < m.span && !m.gone[seq] && !m.cut[seq] {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

func (m *model) add(seq uint64, at, now int) {
	m.facts[seq] = at
	if seqs := m.visible(now); len(seqs) > m.capacity {
		m.cut[seqs[0]] = true
		m.since = max(m.since, m.facts[seqs[0]])
	}
}

// A record gets facts and retractions late and in any order. It shows the newest
// facts within the span that were not taken back. In the time that it claims to
// cover, no fact is missing.
func TestRecordAgainstModel(t *testing.T) {
	epoch := time.Now()
	for seed := range uint64(25) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := model{span: 20, capacity: 1 + rnd.IntN(40), facts: map[uint64]int{}, gone: map[uint64]bool{}, cut: map[uint64]bool{}}
		r := record{span: 20 * time.Second, capacity: m.capacity}
		r.begin(epoch)

		type event struct {
			seq  uint64
			at   int
			back bool
		}
		var late []event // not given yet
		raised := uint64(0)
		for now := range 150 {
			clock := epoch.Add(time.Duration(now) * time.Second)
			for range rnd.IntN(4) {
				raised++
				late = append(late, event{raised, now, false})
				if rnd.IntN(5) == 0 {
					late = append(late, event{raised, now, true})
				}
			}
			rnd.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
			given := len(late)
			if rnd.IntN(3) == 0 {
				given = rnd.IntN(given + 1)
			}
			for _, e := range late[:given] {
				if e.back {
					m.gone[e.seq] = true
					r.takeBack(e.seq)
				} else {
					m.add(e.seq, e.at, now)
					r.add(signals.Signal{Seq: e.seq, Time: epoch.Add(time.Duration(e.at) * time.Second)}, clock)
				}
			}
			late = late[given:]

			r.expire(clock)
			var got []uint64
			for _, s := range r.facts {
				got = append(got, s.Seq)
			}
			want := m.visible(now)
			covered, all := r.covered(clock), min(m.span, now-m.since)
			if !slices.Equal(got, want) || covered != time.Duration(all)*time.Second {
				t.Fatalf("seed %d, second %d:\n got %v, covering %v\nwant %v, covering %ds", seed, now, got, covered, want, all)
			}
			for seq, at := range m.facts {
				if now-at < all && !m.gone[seq] && !slices.Contains(got, seq) {
					t.Fatalf("seed %d, second %d: covers %v without %d", seed, now, covered, seq)
				}
			}
		}
	}
}

func TestRecordLetsGo(t *testing.T) {
	now := time.Now()
	r := record{span: 10 * time.Second, capacity: 1000}
	r.begin(now)
	for seq := range uint64(5) {
		r.add(signals.Signal{Seq: seq, Time: now}, now)
	}
	old := r.facts
	now = now.Add(10 * time.Second)
	r.add(signals.Signal{Seq: 5, Time: now}, now)
	coretest.Check(t, len(r.facts) == 1, "got %v, want one fact: the others are too old", r.facts)
	for _, s := range old {
		coretest.Check(t, s.Seq == 0, "still refers to %v", s)
	}
	r.end()
	r.add(signals.Signal{Seq: 6, Time: now}, now)
	coretest.Check(t, len(r.facts) == 0, "got %v after the end, want nothing", r.facts)
	coretest.Check(t, r.covered(now) == 0, "got %v covered after the end, want nothing", r.covered(now))
}

func TestRecordIsBounded(t *testing.T) {
	now := time.Now()
	r := record{span: time.Hour, capacity: 10}
	r.begin(now)
	for seq := range uint64(10 * remembered) {
		r.add(signals.Signal{Seq: seq, Time: now}, now)
		r.takeBack(seq)
		r.add(signals.Signal{Seq: 1 << 32, Time: now}, now)
	}
	if len(r.facts) != 10 || len(r.gone) != remembered || cap(r.facts) > 100 || cap(r.gone) > 10*remembered {
		t.Errorf("got %d facts in %d places, %d gone in %d", len(r.facts), cap(r.facts), len(r.gone), cap(r.gone))
	}
}
