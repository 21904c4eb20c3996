package mesh

import (
	"math"
)

const (
	maxOrigins = 1024
	// clockWindow is how long the smallest difference of two clocks counts at least: clocks
	// drift.
	clockWindow = 10 * 60 * 1_000_000_000
)

// table is what this node has learned from the others: a plain structure without lock and clock.
// Times are nanoseconds of this node's monotonic clock. A step appends its effects.
type table struct {
	run, name string // of this node
	lease     int64
	maxLate   int64              // or math.MaxInt64
	maxRate   int                // or math.MaxInt
	accepts   func(string) bool  // by name
	origins   map[string]*origin // by run
	counted   map[string]*origin // by name: the run of that name that counts
	effects   []effect
	greet     bool   // a node is heard that was not: a beat lets it hear this one at once
	received  uint64 // facts to be raised
	refused   uint64 // messages and facts
	forgotten losses // of runs that are forgotten
}

// losses are facts of a run that were not raised, although they should have been.
type losses struct{ missed, late, over uint64 }

// origin is a run of a node.
type origin struct {
	run, name string
	heard     int64 // when the newest message was sent, by the clock here
	gone      bool  // it has said that it leaves

	least, before int64 // smallest difference of the clocks, in this window and in the last
	window        int64 // when this window began

	counts bool // it is alive, and the newest run of its name
	holds  map[uint64]*hold
	digest uint64
	proved int64 // when the beat was sent that said that holds is right
	due    int64 // when the first fact in holds may end unless it is proved again
	list   struct {
		number uint64
		left   int
		ids    map[uint64]bool
	}

	started bool   // a number is known
	last    uint64 // number of the newest fact
	losses
	told         uint64 // what of missed was told
	second, this int64  // of the rate
	flushed      uint64 // lost facts at the end of the last Flush
}

// hold is a held fact of an origin.
type hold struct {
	id      uint64
	from    *origin
	item    item
	refused bool   // not accepted: it only counts for the digest
	proved  int64  // when the message was sent that has named it
	release func() // of the shell
}

// effect is what a step wants to happen.
type effect struct {
	begins, ends *hold  // one of them, or neither
	raise        string // or this signal, about
	about        *origin
	number       uint64
}

func newTable(run, name string) *table {
	return &table{run: run, name: name, origins: map[string]*origin{}, counted: map[string]*origin{}}
}

// hear notes that a message of a run has come, and returns the run, or nil if it must be
// ignored. Age is how long the message was under way.
func (t *table) hear(now int64, run string, m *message) (o *origin, age int64) {
	o = t.origins[run]
	if o == nil {
		if len(t.origins) >= maxOrigins && !t.forget() {
			t.refused++
			return nil, 0
		}
		o = &origin{run: run, name: m.Node, least: math.MaxInt64, before: math.MaxInt64, window: now, heard: math.MinInt64, holds: map[uint64]*hold{}}
		t.origins[run] = o
	}
	age = o.age(now, m.Sent)
	if o.gone || o.name != m.Node || t.superseded(o) {
		t.refused++
		return nil, 0
	}
	o.heard = max(o.heard, now-age)
	if !o.counts && o.heard+t.lease > now {
		if older := t.counted[o.name]; older != nil {
			t.silence(older)
		}
		o.counts, t.counted[o.name], t.greet = true, o, true
	}
	return o, age
}

// superseded reports whether a later run of the same name is alive.
func (t *table) superseded(o *origin) bool {
	c := t.counted[o.name]
	return c != nil && c.run > o.run || o.name == t.name && o.run < t.run
}

// age returns how long a message was under way, beyond the fastest one.
func (o *origin) age(now, sent int64) int64 {
	if now-o.window >= clockWindow {
		o.before, o.least, o.window = o.least, math.MaxInt64, now
	}
	o.least = min(o.least, now-sent)
	return max(0, now-sent-min(o.least, o.before))
}

// forget makes room for a new run: it forgets the run that has been silent for the longest time.
func (t *table) forget() bool {
	var oldest *origin
	for _, o := range t.origins {
		if !o.counts && (oldest == nil || o.heard < oldest.heard) {
			oldest = o
		}
	}
	if oldest == nil {
		return false
	}
	delete(t.origins, oldest.run)
	t.forgotten.missed += oldest.missed
	t.forgotten.late += oldest.late
	t.forgotten.over += oldest.over
	return true
}

// silence ends what a run holds: it is gone, silent, or superseded.
func (t *table) silence(o *origin) {
	for id := range o.holds {
		t.end(o, id)
	}
	o.counts = false
	o.list.ids = nil
	delete(t.counted, o.name)
}

func (t *table) end(o *origin, id uint64) {
	h := o.holds[id]
	if h == nil {
		return
	}
	delete(o.holds, id)
	o.digest ^= mix(id)
	if !h.refused {
		t.effects = append(t.effects, effect{ends: h})
	}
}

func (t *table) begin(o *origin, it *item, at int64) {
	h := o.holds[it.ID]
	if h == nil {
		if len(o.holds) >= maxHolds+maxBatch {
			t.refused++
			return
		}
		h = &hold{id: it.ID, from: o, item: *it, refused: !it.fits() || !t.accepts(it.Name)}
		o.holds[it.ID] = h
		o.digest ^= mix(it.ID)
		if h.refused {
			h.item = item{}
			t.refused++
		} else {
			t.effects = append(t.effects, effect{begins: h})
		}
		if len(o.holds) == 1 {
			o.due = math.MaxInt64
		}
	}
	h.proved = max(h.proved, at)
	o.due = min(o.due, h.proved+t.lease)
}

// state handles a message about held facts. It reports whether the run has to be asked for its
// held facts, and for an ask, whether all are known.
func (t *table) state(now int64, run string, m *message) (need, known bool) {
	o, age := t.hear(now, run, m)
	if o == nil {
		return false, false
	}
	if m.Is == isLeave {
		t.silence(o)
		o.gone = true
		return false, false
	}
	if !o.counts {
		return false, false
	}
	at := now - age
	switch m.Is {
	case isBeat, isAsk:
		if known = m.Held == len(o.holds) && m.Digest == o.digest; known {
			o.proved = max(o.proved, at)
		}
		return !known, known
	case isChange:
		for i := range m.Items {
			t.begin(o, &m.Items[i], at)
		}
		for _, id := range m.Ended { // after the items: a fact may have been held for a moment
			t.end(o, id)
		}
	case isPiece:
		t.piece(o, m, at)
	default:
		t.refused++
	}
	return false, false
}

// piece handles a part of the list of held facts. When all parts have come, the facts that
// were not in the list end.
func (t *table) piece(o *origin, m *message, at int64) {
	l := &o.list
	if l.ids == nil || l.number != m.List {
		l.number, l.left, l.ids = m.List, m.Pieces, map[uint64]bool{}
	}
	for i := range m.Items {
		t.begin(o, &m.Items[i], at)
		l.ids[m.Items[i].ID] = true
	}
	if l.left--; l.left > 0 && len(l.ids) <= maxHolds {
		return
	}
	for id := range o.holds {
		if l.left == 0 && id <= m.Upto && !l.ids[id] {
			t.end(o, id)
		}
	}
	l.ids = nil
}

// expire ends what has not been proved for Lease, and returns when that happens next.
func (t *table) expire(now int64) (next int64) {
	next = math.MaxInt64
	for _, o := range t.counted {
		if o.heard+t.lease <= now {
			t.effects = append(t.effects, effect{raise: SignalLost, about: o})
			t.silence(o)
			continue
		}
		next = min(next, o.heard+t.lease)
		if o.missed > o.told {
			t.effects = append(t.effects, effect{raise: SignalMissed, about: o, number: o.missed - o.told})
			o.told = o.missed
		}
		if len(o.holds) == 0 {
			continue
		}
		if max(o.due, o.proved+t.lease) <= now {
			o.due = math.MaxInt64
			for id, h := range o.holds {
				if end := h.proved + t.lease; end <= now {
					t.end(o, id)
				} else {
					o.due = min(o.due, end)
				}
			}
		}
		next = min(next, max(o.due, o.proved+t.lease))
	}
	return next
}

// arrive handles a message of raised facts, and counts those that have not come.
func (t *table) arrive(now int64, run string, m *message) (o *origin, age int64) {
	o, age = t.hear(now, run, m)
	if o == nil {
		return nil, 0
	}
	if !o.started {
		o.started, o.last = true, m.Last
		if len(m.Items) > 0 {
			o.last = m.Items[0].ID - 1
		}
	}
	return o, age
}

// admit reports whether the fact is to be raised now. Age is that of its message.
func (t *table) admit(now int64, o *origin, it *item, age int64) bool {
	if it.ID <= o.last {
		t.refused++
		return false
	}
	o.missed += it.ID - o.last - 1
	o.last = it.ID
	if now-o.second >= 1_000_000_000 {
		o.second, o.this = now, 0
	}
	switch o.this++; {
	case o.this > int64(t.maxRate):
		o.over++
		t.refused++
		return false
	case age+min(max(it.Age, 0), math.MaxInt64/2) > t.maxLate:
		o.late++
		return false
	case !it.fits() || !t.accepts(it.Name):
		t.refused++
		return false
	}
	t.received++
	return true
}

// passed notes that all facts up to a number have been sent or never will be.
func (t *table) passed(o *origin, last uint64) {
	if last > o.last {
		o.missed += last - o.last
		o.last = last
	}
}

func (l *losses) lost() uint64 { return l.missed + l.late + l.over }

// close ends what all nodes hold.
func (t *table) close() {
	for _, o := range t.counted {
		t.silence(o)
	}
}

// alive is how many other nodes count.
func (t *table) alive() int { return len(t.counted) }

// duplicate reports whether a later run with the name of this node is alive.
func (t *table) duplicate() bool { return t.counted[t.name] != nil }
