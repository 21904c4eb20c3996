package reputation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// model is a book that decays every score at every step, and searches for the smallest.
type model struct {
	capacity        int
	halfLife, floor float64
	scores          map[string]float64
}

func (m *model) pass(d time.Duration) {
	for key := range m.scores {
		m.scores[key] *= math.Pow(0.5, float64(d)/m.halfLife)
	}
	m.fade()
}

func (m *model) fade() {
	for key, score := range m.scores {
		if math.Abs(score) < m.floor || score == 0 {
			delete(m.scores, key)
		}
	}
}

func (m *model) update(key string, delta float64) {
	if _, known := m.scores[key]; !known && len(m.scores) == m.capacity && math.Abs(delta) >= m.floor {
		least := ""
		for other, score := range m.scores {
			if least == "" || math.Abs(score) < math.Abs(m.scores[least]) {
				least = other
			}
		}
		delete(m.scores, least)
	}
	m.scores[key] += delta
	m.fade()
}

// Faults avoided: beyond the capacity, the entry with the lowest stored score goes:
// the most negative one, and possibly the one that was just updated. All entries are
// sorted to find it. Entries never expire by decay.
func TestBookAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := &model{
			capacity: 1 + rnd.IntN(12), halfLife: float64(time.Minute), floor: 0.001 * float64(rnd.IntN(3)),
			scores: map[string]float64{},
		}
		b := newBook[string](m.capacity, m.halfLife, m.floor)
		var now time.Duration
		for step := range 400 {
			if rnd.IntN(3) == 0 {
				d := time.Duration(rnd.Int64N(int64(3 * time.Minute)))
				now += d
				m.pass(d)
			}
			key := fmt.Sprint(rnd.IntN(20))
			switch rnd.IntN(12) {
			case 0:
				delete(m.scores, key)
				b.remove(key)
			case 1:
				b.fade(now)
			default:
				delta := rnd.NormFloat64() * math.Exp2(float64(rnd.IntN(12)-6))
				m.update(key, delta)
				if got, want := b.update(key, delta, now), m.scores[key]; !near(got, want) {
					t.Fatalf("seed %d, step %d: update of %s by %v: got %v, want %v", seed, step, key, delta, got, want)
				}
			}
			all := b.all(now)
			if len(all) != len(m.scores) || len(b.entries) != len(all) {
				t.Fatalf("seed %d, step %d: got %d scores, %d entries, want %d",
					seed, step, len(all), len(b.entries), len(m.scores))
			}
			for _, e := range all {
				if !near(e.score, m.scores[e.key]) || !near(b.score(e.key, now), e.score) {
					t.Fatalf("seed %d, step %d: %s has %v, want %v", seed, step, e.key, e.score, m.scores[e.key])
				}
			}
		}
	}
}

func near(x, y float64) bool { return math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y)) }
