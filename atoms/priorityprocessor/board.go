package priorityprocessor

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// board decides who is tried next and who is healthy. It has no lock and no clock:
// times are offsets from a base.
type board struct {
	members   []member // by priority, and in the order in which they were given
	levels    []level  // of the members, highest first
	threshold int      // failures in a row; negative: never unhealthy
	wait      time.Duration
	maxWait   time.Duration
	neverTry  bool // those that are unhealthy, while no probe is due

	attempts, trips, restores, probes uint64
}

// level is all members of one priority.
type level struct {
	priority   int
	first, end int // members
	turn       int // who is next, from first
}

type member struct {
	name     string
	level    int
	priority int
	probed   bool // by a function; otherwise by items

	healthy  bool
	epoch    uint32 // counts the changes of health: what began in another tells nothing of this one
	failures int    // in a row
	err      error  // of the last failure
	since    time.Duration

	// While it is unhealthy:
	trying bool          // it is being probed
	due    time.Duration // when it is to be probed
	wait   time.Duration // how long that was put off the last time

	running                      int
	succeeded, failed, cancelled uint64
}

// ticket is an attempt under way.
type ticket struct {
	member int
	epoch  uint32
	trial  bool // it is the probe
}

type outcome int

const (
	panicked  outcome = iota // or ended the goroutine: as good as failed
	succeeded                // or failed by fault of the item
	failed
	cancelled // nobody knows
)

// change is what an event has changed.
type change struct {
	member  int
	changed bool // its health
	healthy bool // from now on
	// from and to are the highest priorities with a healthy member before and
	// after; 0 if there is none.
	from, to int
}

// newBoard sorts the members, which must not be empty.
func newBoard(members []member, threshold int, wait, maxWait time.Duration, neverTry bool) board {
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.priority, b.priority) })
	b := board{members: members, threshold: threshold, wait: wait, maxWait: maxWait, neverTry: neverTry}
	for i := range members {
		if i == 0 || members[i].priority != members[i-1].priority {
			b.levels = append(b.levels, level{priority: members[i].priority, first: i})
		}
		b.levels[len(b.levels)-1].end = i + 1
		members[i].level = len(b.levels) - 1
		members[i].healthy = true
	}
	return b
}

// pick chooses who is tried next, of those that are not in the set tried, beginning
// at level start.
func (b *board) pick(tried uint64, start int, now time.Duration) (t ticket, ok bool) {
	for n := range b.levels {
		l := &b.levels[(start+n)%len(b.levels)]
		for i := l.first; i < l.end; i++ {
			if m := &b.members[i]; tried&(1<<i) == 0 && b.awaitsItem(m, now) {
				m.trying = true
				return b.begin(i, true), true
			}
		}
		size := l.end - l.first
		for k := range size {
			i := l.first + (l.turn+k)%size
			if tried&(1<<i) == 0 && b.members[i].healthy {
				l.turn = (i - l.first + 1) % size
				return b.begin(i, false), true
			}
		}
	}
	if b.neverTry {
		return ticket{}, false
	}
	for n := range b.levels {
		l := &b.levels[(start+n)%len(b.levels)]
		for i := l.first; i < l.end; i++ {
			if tried&(1<<i) == 0 {
				return b.begin(i, false), true
			}
		}
	}
	return ticket{}, false
}

// awaitsItem reports whether an item is to be the probe of m.
func (b *board) awaitsItem(m *member, now time.Duration) bool {
	return !m.healthy && !m.probed && !m.trying && b.wait >= 0 && now >= m.due
}

func (b *board) begin(i int, trial bool) ticket {
	b.attempts++
	b.members[i].running++
	return ticket{i, b.members[i].epoch, trial}
}

// end takes note of what became of an attempt.
func (b *board) end(t ticket, o outcome, err error, now time.Duration) change {
	m := &b.members[t.member]
	m.running--
	switch o {
	case succeeded:
		m.succeeded++
	case cancelled:
		m.cancelled++
	default:
		m.failed++
	}
	if t.epoch != m.epoch {
		return change{}
	}
	if t.trial {
		m.trying = false
	}
	switch o {
	case cancelled:
		return change{}
	case succeeded:
		m.failures = 0
		return b.set(t.member, true, now)
	}
	m.failures++
	m.err = err
	switch {
	case t.trial:
		b.putOff(m, now)
	case m.healthy && b.threshold >= 0 && m.failures >= b.threshold:
		return b.set(t.member, false, now)
	}
	return change{}
}

// set changes the health of a member, if it is not so already.
func (b *board) set(i int, healthy bool, now time.Duration) change {
	m := &b.members[i]
	if m.healthy == healthy {
		return change{}
	}
	c := change{member: i, changed: true, healthy: healthy, from: b.route()}
	m.healthy, m.since, m.trying = healthy, now, false
	m.epoch++
	if healthy {
		b.restores++
		m.failures = 0
	} else {
		b.trips++
		m.wait, m.due = b.wait, later(now, b.wait)
	}
	c.to = b.route()
	return c
}

// mark is set from outside: what went before does not count any more.
func (b *board) mark(i int, healthy bool, now time.Duration) change {
	m := &b.members[i]
	if m.healthy {
		m.failures, m.err = 0, nil
		m.epoch++
	}
	return b.set(i, healthy, now)
}

// route is the highest priority with a healthy member, or 0.
func (b *board) route() int {
	for i := range b.members {
		if b.members[i].healthy {
			return b.members[i].priority
		}
	}
	return 0
}

// beginProbe reports whether a probe that was planned in that epoch may begin.
func (b *board) beginProbe(i int, epoch uint32) bool {
	m := &b.members[i]
	if m.healthy || m.epoch != epoch || m.trying {
		return false
	}
	m.trying = true
	b.probes++
	return true
}

// endProbe takes note of what a probe said, and reports whether that was news.
func (b *board) endProbe(i int, epoch uint32, o outcome, err error, now time.Duration) (c change, news bool) {
	m := &b.members[i]
	if m.epoch != epoch {
		return change{}, false
	}
	m.trying = false
	switch o {
	case cancelled:
		return change{}, false
	case succeeded:
		return b.set(i, true, now), true
	}
	m.err = err
	b.putOff(m, now)
	return change{}, true
}

func (b *board) putOff(m *member, now time.Duration) {
	if m.wait > b.maxWait/2 {
		m.wait = b.maxWait
	} else {
		m.wait *= 2
	}
	m.due = later(now, m.wait)
}

// later is at + wait, or as late as can be.
func later(at, wait time.Duration) time.Duration {
	if sum := at + wait; sum >= at || wait < 0 {
		return sum
	}
	return math.MaxInt64
}
