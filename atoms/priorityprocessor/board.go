package priorityprocessor

import (
	"math"
	"time"
)

// board decides which processor tries an item next and which processors are healthy. It
// has no lock and no clock: times are offsets from a base.
type board struct {
	members   []member // by priority, and in the order in which they were given
	levels    []level  // of the members, highest priority first
	threshold int      // failures in a row; negative: they make nothing unhealthy
	wait      time.Duration
	maxWait   time.Duration
	neverTry  bool // unhealthy members, while no probe is due

	stats Stats
}

// level is all members of one priority.
type level struct {
	priority   int
	first, end int // members
	turn       int // which one is next, from first
}

type member struct {
	ProcessorStatus
	probed bool   // by a function; otherwise by items
	epoch  uint32 // counts the changes of health: a result counts only if it began in this epoch
	since  time.Duration

	// While it is unhealthy:
	due  time.Duration // when it is to be probed
	wait time.Duration // how long the probe was delayed the last time
}

// ticket is an attempt that has begun.
type ticket struct {
	member int
	epoch  uint32
	probe  bool // the item is the probe
}

type outcome int

const (
	panicked  outcome = iota // or ended the goroutine: also a failure
	succeeded                // or the error is the item's own fault
	failed
	cancelled // says nothing about the processor
)

// newBoard makes a board of one or more members, sorted by priority. All are healthy.
func newBoard(members []member, opts Options) board {
	b := board{members: members, threshold: opts.Threshold, wait: opts.ProbeAfter, maxWait: opts.MaxProbeAfter, neverTry: opts.HealthyOnly}
	for i := range members {
		if i == 0 || members[i].Priority != members[i-1].Priority {
			b.levels = append(b.levels, level{priority: members[i].Priority, first: i})
		}
		b.levels[len(b.levels)-1].end = i + 1
		members[i].Healthy = true
	}
	return b
}

// pick chooses which member tries an item next, of those that are not in the set tried,
// beginning at level start.
func (b *board) pick(tried uint64, start int, now time.Duration) (t ticket, ok bool) {
	lastResort := -1
	for n := range b.levels {
		l := &b.levels[(start+n)%len(b.levels)]
		for i := l.first; i < l.end; i++ {
			if tried&(1<<i) != 0 {
				continue
			}
			if lastResort < 0 {
				lastResort = i
			}
			if m := &b.members[i]; !m.probed && b.due(m, now) {
				m.Probing = true
				return b.begin(i, true), true
			}
		}
		size := l.end - l.first
		for k := range size {
			i := l.first + (l.turn+k)%size
			if tried&(1<<i) == 0 && b.members[i].Healthy {
				l.turn = (i - l.first + 1) % size
				return b.begin(i, false), true
			}
		}
	}
	if b.neverTry || lastResort < 0 {
		return ticket{}, false
	}
	return b.begin(lastResort, false), true
}

// due reports whether m is to be probed now.
func (b *board) due(m *member, now time.Duration) bool {
	return !m.Healthy && !m.Probing && b.wait >= 0 && now >= m.due
}

// finish counts the end of an item.
func (b *board) finish(counter *uint64) {
	b.stats.Running--
	*counter++
}

func (b *board) begin(i int, probe bool) ticket {
	b.stats.Attempts++
	b.members[i].Running++
	return ticket{i, b.members[i].epoch, probe}
}

// end records the end of an attempt, and reports whether the health of its member has
// changed.
func (b *board) end(t ticket, o outcome, err error, now time.Duration) (changed bool) {
	m := &b.members[t.member]
	m.Running--
	switch o {
	case succeeded:
		m.Succeeded++
	case cancelled:
		m.Cancelled++
	default:
		m.Failed++
	}
	changed, counts := b.result(t, o, err, now)
	if counts && o != succeeded {
		m.Failures++
		if m.Healthy && b.threshold >= 0 && m.Failures >= b.threshold {
			return b.set(t.member, false, now)
		}
	}
	return changed
}

// result records the result of an attempt or a probe, and reports whether it has changed
// the health of its member, and whether it counts.
func (b *board) result(t ticket, o outcome, err error, now time.Duration) (changed, counts bool) {
	m := &b.members[t.member]
	if m.epoch != t.epoch {
		return false, false
	}
	if t.probe {
		m.Probing = false
	}
	switch o {
	case cancelled:
		return false, false
	case succeeded:
		m.Failures = 0
		return b.set(t.member, true, now), true
	}
	m.LastErr = err
	if t.probe {
		b.delay(m, now)
	}
	return false, true
}

// set sets the health of a member, and reports whether that has changed.
func (b *board) set(i int, healthy bool, now time.Duration) (changed bool) {
	m := &b.members[i]
	if m.Healthy == healthy {
		return false
	}
	m.Healthy, m.since, m.Probing = healthy, now, false
	m.epoch++
	if healthy {
		b.stats.Restored++
		m.Failures = 0
	} else {
		b.stats.Unhealthy++
		m.wait, m.due = b.wait, later(now, b.wait)
	}
	return true
}

// mark is set from outside: results of what began before do not count any more.
func (b *board) mark(i int, healthy bool, now time.Duration) (changed bool) {
	m := &b.members[i]
	if m.Healthy {
		m.Failures, m.LastErr = 0, nil
		m.epoch++
	}
	return b.set(i, healthy, now)
}

// route is the highest priority with a healthy member, or 0.
func (b *board) route() int {
	for i := range b.members {
		if b.members[i].Healthy {
			return b.members[i].Priority
		}
	}
	return 0
}

// beginProbe begins a probe by a function, if one is due.
func (b *board) beginProbe(i int, now time.Duration) (t ticket, ok bool) {
	m := &b.members[i]
	if !b.due(m, now) {
		return ticket{}, false
	}
	m.Probing = true
	b.stats.Probes++
	return ticket{i, m.epoch, true}, true
}

// delay doubles the time until the next probe.
func (b *board) delay(m *member, now time.Duration) {
	if m.wait > b.maxWait/2 {
		m.wait = b.maxWait
	} else {
		m.wait *= 2
	}
	m.due = later(now, m.wait)
}

// later is at + wait, or the latest time there is.
func later(at, wait time.Duration) time.Duration {
	if sum := at + wait; sum >= at || wait < 0 {
		return sum
	}
	return math.MaxInt64
}
