package priorityprocessor

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testMember(priority int, probed bool) member {
	return member{ProcessorStatus: ProcessorStatus{Priority: priority}, probed: probed}
}

// model does what the documentation says about the board.
type model struct {
	priorities  []int
	probed      []bool
	healthy     []bool
	failures    []int
	due, wait   []time.Duration
	trying      []bool
	turns       map[int][]int // members of each priority, the next one first
	threshold   int
	after, most time.Duration
	healthyOnly bool
}

func (d *model) order(start int) (order []int) {
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

func (d *model) pick(tried map[int]bool, start int, now time.Duration) (member int, probe bool) {
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

// The board does what the model does, step by step. There is one attempt or probe at a
// time, so none is of an earlier epoch.
func TestBoardLikeTheModel(t *testing.T) {
	rounds := 200
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 2000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		after := []time.Duration{-1, 5, 5}[r.IntN(3)]
		d := &model{threshold: r.IntN(4) - 1, after: after, most: 35, healthyOnly: r.IntN(2) == 0, turns: map[int][]int{}}
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
			members = append(members, testMember(priority, probed))
		}
		n := len(members)
		d.failures, d.due, d.wait, d.trying = make([]int, n), make([]time.Duration, n), make([]time.Duration, n), make([]bool, n)
		b := newBoard(members, Options{Threshold: d.threshold, ProbeAfter: after, MaxProbeAfter: d.most, HealthyOnly: d.healthyOnly})
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
				ticket, began := b.beginProbe(i, now)
				require.Equal(t, !d.healthy[i] && after >= 0 && now >= d.due[i], began, "seed %d", seed)
				if !began {
					break
				}
				b.result(ticket, o, nil, now)
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
					want, probe := d.pick(tried, start, now)
					require.Equal(t, want >= 0, ok, "seed %d: somebody is picked", seed)
					if !ok {
						break
					}
					require.Equal(t, want, ticket.member, "seed %d", seed)
					require.Equal(t, probe, ticket.probe, "seed %d", seed)
					o := []outcome{failed, failed, failed, succeeded, panicked, cancelled}[r.IntN(6)]
					b.end(ticket, o, nil, now)
					if probe {
						d.trying[want] = false
					}
					switch o {
					case succeeded:
						d.failures[want] = 0
						set(want, true)
					case failed, panicked:
						d.failures[want]++
						if probe {
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
				require.Equal(t, d.healthy[i], m.Healthy, "seed %d: health of %d", seed, i)
				require.Equal(t, d.failures[i], m.Failures, "seed %d: failures of %d", seed, i)
				if !m.Healthy && after >= 0 {
					require.Equal(t, d.due[i], m.due, "seed %d: when %d is due", seed, i)
				}
			}
		}
	}
}

// Results of attempts and probes that began before the health changed do not count.
func TestBoardForgetsWhatBeganEarlier(t *testing.T) {
	b := newBoard([]member{testMember(1, false), testMember(2, false)}, Options{Threshold: 1, ProbeAfter: 5, MaxProbeAfter: 60})
	m := &b.members[0]
	slow, _ := b.pick(0, 0, 0)
	late, _ := b.pick(0, 0, 0)
	bad, _ := b.pick(0, 0, 0)
	b.end(bad, failed, errors.New("down"), 0)
	require.False(t, m.Healthy)
	b.end(slow, succeeded, nil, 1)
	require.False(t, m.Healthy, "it had begun before the failure")
	probe, _ := b.pick(0, 0, 5)
	require.True(t, probe.probe)
	b.end(probe, succeeded, nil, 6)
	require.True(t, m.Healthy)
	b.end(late, failed, nil, 7)
	require.True(t, m.Healthy, "it had begun before the probe")

	b.mark(0, false, 10)
	ticket, ok := b.beginProbe(0, 15)
	require.True(t, ok)
	_, ok = b.beginProbe(0, 15)
	require.False(t, ok, "one at a time")
	b.mark(0, true, 16)
	changed, counts := b.result(ticket, failed, nil, 17)
	require.False(t, counts || changed)
	require.True(t, m.Healthy)
}

// The time between probes doubles up to the limit, and the time of the next one does not
// overflow.
func TestBoardDelay(t *testing.T) {
	for _, limit := range []time.Duration{60, math.MaxInt64} {
		b := newBoard([]member{testMember(1, false)}, Options{Threshold: 1, ProbeAfter: 5, MaxProbeAfter: limit})
		m := &b.members[0]
		b.mark(0, false, 100)
		want := time.Duration(5)
		for range 100 {
			require.Equal(t, want, m.wait)
			require.True(t, m.due == 100+want || m.due == math.MaxInt64 && want > math.MaxInt64-100)
			b.delay(m, 100)
			if want > limit/2 {
				want = limit
			} else {
				want *= 2
			}
		}
		require.Equal(t, limit, m.wait)
	}
}
