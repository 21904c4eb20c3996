package priorityprocessor

import (
	"math"
	"time"
)

// board decides which processor tries an item next and which processors are healthy. It
// has no lock and no clock: times are offsets from a base.
type board struct {
	members   []member // sorted by priority; members of equal priority in the order of New
	levels    []level  // levels of the members, highest priority first
	threshold int      // failures in a row that make a member unhealthy; negative: none
	wait      time.Duration
	maxWait   time.Duration
	neverTry  bool // do not try unhealthy members while no probe is due

	stats Stats
}

// level is all members of one priority.
type level struct {
	priority   int
	first, end int // members
	turn       int // the next member, counted from first
}

type member struct {
	ProcessorStatus
	lastErr error
	probing bool   // a probe runs
	probed  bool   // probed by a function; otherwise by items
	epoch   uint32 // counts the changes of health; a result counts only if it began in this epoch
	since   time.Duration

	// While the member is unhealthy:
	due  time.Duration // when the next probe is due
	wait time.Duration // the time before this probe
}

// ticket is an attempt that has begun.
type ticket struct {
	member int
	epoch  uint32
	probe  bool // the item is the probe
}

type outcome int

const (
	panicked  outcome = iota // panicked, or the goroutine was ended; both are failures
	succeeded                // succeeded, or the item is at fault
	failed
	cancelled // the processor neither succeeded nor failed
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

// pick chooses the member that tries an item next. It begins at the level start, and leaves out
// the members in the set tried.
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
				m.probing = true
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

// due reports whether a probe of m is due.
func (b *board) due(m *member, now time.Duration) bool {
	return !m.Healthy && !m.probing && b.wait >= 0 && now >= m.due
}

// finish counts the end of an item.
func (b *board) finish(counter *uint64) {
	b.stats.Running--
	*counter++
}

func (b *board) begin(i int, probe bool) ticket {
	return ticket{i, b.members[i].epoch, probe}
}

// end records the end of an attempt, and reports whether this has changed the health of the
// member.
func (b *board) end(t ticket, o outcome, err error, now time.Duration) (changed bool) {
	m := &b.members[t.member]
	switch o {
	case succeeded:
		m.Succeeded++
	case cancelled:
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

// result records the result of an attempt or a probe. It reports whether this has changed the
// health of the member, and whether the result counts.
func (b *board) result(t ticket, o outcome, err error, now time.Duration) (changed, counts bool) {
	m := &b.members[t.member]
	if m.epoch != t.epoch {
		return false, false
	}
	if t.probe {
		m.probing = false
	}
	switch o {
	case cancelled:
		return false, false
	case succeeded:
		m.Failures = 0
		return b.set(t.member, true, now), true
	}
	m.lastErr = err
	if t.probe {
		b.delay(m, now)
	}
	return false, true
}

// set sets the health of a member, and reports whether the health has changed.
func (b *board) set(i int, healthy bool, now time.Duration) (changed bool) {
	m := &b.members[i]
	if m.Healthy == healthy {
		return false
	}
	m.Healthy, m.since, m.probing = healthy, now, false
	m.epoch++
	if healthy {
		m.Failures = 0
	} else {
		m.wait, m.due = b.wait, later(now, b.wait)
	}
	return true
}

// mark sets the health for a caller of the Failover. Attempts and probes that began before do
// not count.
func (b *board) mark(i int, healthy bool, now time.Duration) (changed bool) {
	m := &b.members[i]
	if m.Healthy {
		m.Failures, m.lastErr = 0, nil
		m.epoch++
	}
	return b.set(i, healthy, now)
}

// route returns the highest priority that has a healthy member, or 0.
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
	m.probing = true
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

// later returns at + wait, or the latest possible time.
func later(at, wait time.Duration) time.Duration {
	if sum := at + wait; sum >= at || wait < 0 {
		return sum
	}
	return math.MaxInt64
}
