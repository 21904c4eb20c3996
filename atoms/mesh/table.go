package mesh

import (
	"maps"
	"math"
	"time"
)

const (
	maxOrigins = 1024
	maxEffects = 100_000 // that wait for a handler
)

// table is what this node has learned from the others: a plain structure without lock and clock.
// Times are those of this node's monotonic clock. A step appends its effects.
type table struct {
	opts    Options
	run     string             // of this node
	origins map[string]*origin // by run
	counted map[string]*origin // by name: the newest run of that name, if it is alive
	self    *origin            // what this node holds about itself
	effects []effect
	beatAt  time.Duration // when the next beat of this node is due
	raised  uint64        // facts
	refused uint64        // messages and facts
	closed  bool
	Losses  // also of runs that are forgotten
}

// effect is what a step wants to happen: one of its fields.
type effect struct {
	begins, ends *hold
	lost         string   // a node
	unsent       uint64   // facts of this node
	beat         *message // to be handled behind all facts that have come
}

// hear notes that a message of a run has come, and returns the run, or nil if it must be
// ignored.
func (t *table) hear(now time.Duration, m *message) *origin {
	o, newest := t.origins[m.Run], t.counted[m.Node]
	if len(t.origins) >= maxOrigins && o == nil { // forget the silent ones
		maps.DeleteFunc(t.origins, func(_ string, o *origin) bool { return t.counted[o.name] != o })
	}
	if o == nil && m.Node != "" && len(t.origins) < maxOrigins {
		o = &origin{run: m.Run, name: m.Node, heard: math.MinInt64, least: now - m.Sent, at: now, holds: map[uint64]*hold{}, acked: new(message)}
		t.origins[m.Run] = o
	}
	if t.closed || o == nil || o.name != m.Node || newest != nil && newest.run > o.run || o.name == t.opts.Name && o.run < t.run {
		t.refused++
		return nil
	}
	if o.heard = max(o.heard, now-o.age(now, m.Sent)); newest != o && !o.gone && o.heard+t.opts.Lease > now {
		if newest != nil {
			t.silence(newest)
		}
		t.counted[o.name], t.beatAt = o, 0 // the beat lets it hear this node at once
	}
	return o
}

// silence ends what a node holds: it is gone, silent, or there is a newer run.
func (t *table) silence(o *origin) {
	for id := range o.holds {
		t.end(o, id)
	}
	delete(t.counted, o.name)
}

// close ends what all nodes hold, and this one about itself.
func (t *table) close() {
	for _, o := range t.counted {
		t.silence(o)
	}
	t.silence(t.self)
	t.closed = true
}

func (t *table) end(o *origin, id uint64) {
	h := o.holds[id]
	if h == nil {
		return
	}
	delete(o.holds, id)
	o.digest ^= mix(id)
	if h.item != nil {
		o.stand--
		t.effects = append(t.effects, effect{ends: h})
	}
}

func (t *table) begin(o *origin, it *item, at time.Duration) {
	h := o.holds[it.ID]
	if h == nil {
		if len(o.holds) >= 2*maxHolds || len(t.effects) >= maxEffects { // a later list has it
			t.refused++
			return
		}
		h = &hold{node: o.name, proved: at}
		o.holds[it.ID] = h
		o.digest ^= mix(it.ID)
		if o == t.self || len(it.Name) <= maxName && mayTravel(t.opts.Accept, it.Name) {
			h.item = new(*it)
			o.stand++
			t.effects = append(t.effects, effect{begins: h})
		} else {
			t.refused++
		}
	}
	h.proved = max(h.proved, at)
}

// state handles a message about held facts. It reports whether the run has to be asked for
// them.
func (t *table) state(now time.Duration, m *message) (need bool) {
	o := t.hear(now, m)
	if o == nil {
		return false
	}
	if o.gone = o.gone || m.Is == isLeave; t.counted[o.name] != o {
		return false
	}
	at := now - o.age(now, m.Sent)
	switch m.Is {
	case isBeat:
		if need = m.Held != len(o.holds) || m.Digest != o.digest; need {
			m.Ask = 0
		} else {
			o.proved = max(o.proved, at)
		}
		if len(t.effects) < maxEffects { // else the next one says it
			t.effects = append(t.effects, effect{beat: m})
		}
	case isHeld, isList:
		named := map[uint64]bool{}
		for i := range m.Items {
			if it := &m.Items[i]; it.Name != "" {
				t.begin(o, it, at)
				named[it.ID] = true
			} else {
				t.end(o, it.ID)
			}
		}
		if m.Is == isList {
			for id := range o.holds {
				if m.From < id && id <= m.Upto && !named[id] {
					t.end(o, id)
				}
			}
		}
	case isLeave:
		t.silence(o)
	default:
		t.refused++
	}
	return need
}

// expire ends what has not been proved for Lease, and returns when that happens next, or a beat
// is due.
func (t *table) expire(now time.Duration) (next time.Duration) {
	next = t.beatAt
	for _, o := range t.counted {
		if o.heard+t.opts.Lease <= now {
			t.effects = append(t.effects, effect{lost: o.name})
			t.silence(o)
			continue
		}
		due := o.proved + t.opts.Lease
		if due <= now {
			due = math.MaxInt64
			for id, h := range o.holds {
				if end := h.proved + t.opts.Lease; end > now {
					due = min(due, end)
				} else {
					t.end(o, id)
				}
			}
		}
		next = min(next, due, o.heard+t.opts.Lease)
	}
	return next
}

// arrive handles a message of raised facts, or a beat behind them.
func (t *table) arrive(now time.Duration, m *message) *origin {
	o := t.hear(now, m)
	if o != nil && !o.started {
		o.started, o.last = true, m.Last
		if len(m.Items) > 0 {
			o.last = m.Items[0].ID - 1
		}
	}
	return o
}

// admit reports whether a fact of a message is to be raised now.
func (t *table) admit(now time.Duration, o *origin, it *item, sent time.Duration) bool {
	if t.closed || it.ID <= o.last {
		t.refused++
		return false
	}
	t.pass(o, it.ID-1)
	o.last = it.ID
	if now-o.second >= time.Second {
		o.second, o.this = now, 0
	}
	switch {
	case t.opts.MaxLate >= 0 && o.age(now, sent)+min(max(it.Age, 0), math.MaxInt64/2) > t.opts.MaxLate:
		o.Late, t.Late = o.Late+1, t.Late+1
	case it.Name == "" || len(it.Name) > maxName || !mayTravel(t.opts.Accept, it.Name):
		t.refused++
	case t.opts.MaxRate >= 0 && o.this >= t.opts.MaxRate:
		o.Over, t.Over = o.Over+1, t.Over+1
	default:
		o.this++
		t.raised++
		return true
	}
	return false
}

// pass notes that facts up to a number have come, or never will.
func (t *table) pass(o *origin, last uint64) {
	if last > o.last {
		o.Missed, t.Missed, o.last = o.Missed+last-o.last, t.Missed+last-o.last, last
	}
}

// say lets this node hold a fact about itself, or not.
func (t *table) say(id uint64, name string, want bool) {
	if want {
		t.begin(t.self, &item{ID: id, Name: name, Key: t.opts.Name}, 0)
	} else {
		t.end(t.self, id)
	}
}
