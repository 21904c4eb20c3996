package priorityprocessor

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dull is what the board should do, in the words of the documentation.
type dull struct {
	priorities  []int
	probed      []bool
	healthy     []bool
	failures    []int
	due, wait   []time.Duration
	trying      []bool
	turns       map[int][]int // members of a priority, who is next first
	threshold   int
	after, most time.Duration
	healthyOnly bool
}

func (d *dull) order(start int) (order []int) {
	for _, from := range []bool{true, false} {
		for p := 1; p <= 9; p++ {
			if (p >= start) == from {
				for i, have := range d.priorities {
					if have == p {
						order = append(order, i)
					}
				}
			}
		}
	}
	return order
}

func (d *dull) pick(tried map[int]bool, start int, now time.Duration) (member int, trial bool) {
	done := map[int]bool{}
	for _, i := range d.order(start) {
		p := d.priorities[i]
		if done[p] {
			continue
		}
		done[p] = true
		for _, j := range d.order(1) {
			if d.priorities[j] == p && !tried[j] && !d.healthy[j] && !d.probed[j] && !d.trying[j] && d.after >= 0 && now >= d.due[j] {
				d.trying[j] = true
				return j, true
			}
		}
		for at, j := range d.turns[p] {
			if d.healthy[j] && !tried[j] {
				d.turns[p] = append(append([]int{}, d.turns[p][at+1:]...), d.turns[p][:at+1]...)
				return j, false
			}
		}
	}
	if !d.healthyOnly {
		for _, i := range d.order(start) {
			if !tried[i] {
				return i, false
			}
		}
	}
	return -1, false
}

// The board does what a dull model does, step by step. One attempt or probe at a time
// is under way, so none is of an earlier epoch.
func TestBoardLikeTheModel(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 300
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		after := []time.Duration{-1, 5, 5}[r.IntN(3)]
		d := &dull{threshold: r.IntN(4) - 1, after: after, most: 35, healthyOnly: r.IntN(2) == 0, turns: map[int][]int{}}
		if d.threshold == 0 {
			d.threshold = 3
		}
		var members []member
		priority := 1
		for i := range 1 + r.IntN(5) {
			if r.IntN(2) == 0 {
				priority++
			}
			probed := r.IntN(2) == 0
			d.priorities = append(d.priorities, priority)
			d.probed = append(d.probed, probed)
			d.healthy = append(d.healthy, true)
			d.turns[priority] = append(d.turns[priority], i)
			members = append(members, member{priority: priority, probed: probed})
		}
		n := len(members)
		d.failures, d.due, d.wait, d.trying = make([]int, n), make([]time.Duration, n), make([]time.Duration, n), make([]bool, n)
		b := newBoard(members, d.threshold, after, d.most, d.healthyOnly)
		now := time.Duration(0)

		set := func(i int, healthy bool) {
			if d.healthy[i] == healthy {
				return
			}
			d.healthy[i], d.trying[i] = healthy, false
			if healthy {
				d.failures[i] = 0
			} else {
				d.wait[i], d.due[i] = after, now+after
			}
		}
		putOff := func(i int) {
			d.wait[i] = min(2*d.wait[i], d.most)
			d.due[i] = now + d.wait[i]
		}
		for range 60 {
			now += time.Duration(r.IntN(8))
			switch r.IntN(8) {
			case 0: // from outside
				i, healthy := r.IntN(n), r.IntN(2) == 0
				b.mark(i, healthy, now)
				if d.healthy[i] {
					d.failures[i] = 0
				}
				set(i, healthy)
			case 1: // a probe
				i := r.IntN(n)
				o := []outcome{succeeded, failed, panicked, cancelled}[r.IntN(4)]
				began := b.beginProbe(i, b.members[i].epoch)
				require.Equal(t, !d.healthy[i], began, "seed %d", seed)
				if !began {
					break
				}
				b.endProbe(i, b.members[i].epoch, o, nil, now)
				switch o {
				case succeeded:
					set(i, true)
				case failed, panicked:
					putOff(i)
				}
			default: // an item
				level := r.IntN(len(b.levels))
				start := b.levels[level].priority
				tried, set64 := map[int]bool{}, uint64(0)
				for {
					ticket, ok := b.pick(set64, level, now)
					want, trial := d.pick(tried, start, now)
					require.Equal(t, want >= 0, ok, "seed %d: somebody is picked", seed)
					if !ok {
						break
					}
					require.Equal(t, want, ticket.member, "seed %d", seed)
					require.Equal(t, trial, ticket.trial, "seed %d", seed)
					o := []outcome{failed, failed, failed, succeeded, panicked, cancelled}[r.IntN(6)]
					b.end(ticket, o, nil, now)
					if trial {
						d.trying[want] = false
					}
					switch o {
					case succeeded:
						d.failures[want] = 0
						set(want, true)
					case failed, panicked:
						d.failures[want]++
						if trial {
							putOff(want)
						} else if d.healthy[want] && d.threshold >= 0 && d.failures[want] >= d.threshold {
							set(want, false)
						}
					}
					if o != failed {
						break
					}
					tried[want], set64 = true, set64|1<<want
				}
			}
			for i := range n {
				m := &b.members[i]
				require.Equal(t, d.healthy[i], m.healthy, "seed %d: health of %d", seed, i)
				require.Equal(t, d.failures[i], m.failures, "seed %d: failures of %d", seed, i)
				require.Equal(t, 0, m.running, "seed %d", seed)
				if !m.healthy && after >= 0 {
					require.Equal(t, d.due[i], m.due, "seed %d: when %d is due", seed, i)
				}
			}
		}
	}
}

// What began before the health changed tells nothing of what it is now.
func TestBoardForgetsWhatBeganEarlier(t *testing.T) {
	b := newBoard([]member{{priority: 1}, {priority: 2}}, 1, 5, 60, false)
	slow, _ := b.pick(0, 0, 0)
	late, _ := b.pick(0, 0, 0)
	bad, _ := b.pick(0, 0, 0)
	b.end(bad, failed, errors.New("down"), 0)
	require.False(t, b.members[0].healthy)
	b.end(slow, succeeded, nil, 1)
	require.False(t, b.members[0].healthy, "it had begun while all was well")
	trial, _ := b.pick(0, 0, 5)
	require.True(t, trial.trial)
	b.end(trial, succeeded, nil, 6)
	require.True(t, b.members[0].healthy)
	b.end(late, failed, nil, 7)
	require.True(t, b.members[0].healthy, "it had begun before it was repaired")
	require.Zero(t, b.members[0].running)

	b.mark(0, false, 10)
	require.True(t, b.beginProbe(0, b.members[0].epoch))
	epoch := b.members[0].epoch
	require.False(t, b.beginProbe(0, epoch), "one at a time")
	b.mark(0, true, 11)
	c, news := b.endProbe(0, epoch, failed, nil, 12)
	require.False(t, news || c.changed)
	require.True(t, b.members[0].healthy)
}

// The time between probes doubles up to the limit, whatever that is.
func TestBoardPutsOff(t *testing.T) {
	for _, limit := range []time.Duration{60, 1<<63 - 1} {
		b := newBoard([]member{{priority: 1}}, 1, 5, limit, false)
		m := &b.members[0]
		b.mark(0, false, 0)
		want := time.Duration(5)
		for range 100 {
			require.Equal(t, want, m.wait)
			b.putOff(m, 0)
			if want > limit/2 {
				want = limit
			} else {
				want *= 2
			}
		}
		require.Equal(t, limit, m.wait)
	}
}

func TestBoardPutsOffForAsLongAsCanBe(t *testing.T) {
	const year = 365 * 24 * time.Hour
	b := newBoard([]member{{name: "a", priority: 1}}, 1, 100*year, math.MaxInt64, false)
	b.mark(0, false, 100*year)
	if due := b.members[0].due; due != 200*year {
		t.Errorf("first probe is due at %v", due)
	}
	for range 2 {
		b.putOff(&b.members[0], 200*year)
		if due := b.members[0].due; due != math.MaxInt64 {
			t.Errorf("next probe is due at %v", due)
		}
	}
}
