package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// own is what this node shares: a plain structure without lock and clock.
type own struct {
	last         uint64 // number of the newest fact
	sent, unsent uint64
	told         uint64           // what of unsent was told
	room         int              // bytes for facts in a message
	holds        map[uint64]share // that fit
	large        map[uint64]share // that do not fit now
	digest       uint64
	beats        uint64 // so far
	asks         map[*ask]bool
	pending
}

// pending is what is to be sent, in the order of its fields.
type pending struct {
	changes []share          // facts that are held from now on, or not any more
	list    bool             // all held facts
	facts   []signals.Signal // Seq is the number
	beat    bool
	leave   bool // the last beat
	wakes   []string
}

// raise queues a fact. If most facts wait already, it is not sent, and the other nodes will
// count it as missed.
func (o *own) raise(s signals.Signal, most int) {
	o.last++
	if len(o.facts) >= most {
		o.unsent++
		return
	}
	s.Seq = o.last
	o.facts = append(o.facts, s)
}

// hold adds a held fact. If it cannot be sent or there are too many, the other nodes will count
// it as missed.
func (o *own) hold(s share) {
	if full := len(o.holds)+len(o.large) >= maxHolds; full || len(s.data) == 0 || len(s.data) >= o.room {
		o.last++
		o.unsent++
		if !full && s.data != nil {
			o.large[s.id] = s
		}
		return
	}
	o.holds[s.id] = s
	o.change(s)
}

// fit notes the room of a message. Held facts that do not fit any more end on the other nodes, and stand
// again when they fit again.
func (o *own) fit(room int) {
	if room == o.room {
		return
	}
	o.room = room
	for id, s := range o.holds {
		if len(s.data) >= room {
			o.release(id)
			o.hold(s)
		}
	}
	for id, s := range o.large {
		if len(s.data) < room {
			delete(o.large, id)
			o.hold(s)
		}
	}
}

// release ends a held fact.
func (o *own) release(id uint64) {
	delete(o.large, id)
	if _, held := o.holds[id]; held {
		delete(o.holds, id)
		o.change(share{id, fmt.Appendf(nil, `{"id":%d}`, id)})
	}
}

// change queues a change of held facts.
func (o *own) change(s share) {
	o.digest ^= mix(s.id)
	if o.changes = append(o.changes, s); len(o.changes) > 2*maxHolds {
		o.changes, o.list = nil, true // the list says it, too
	}
}

// busy reports whether there is something to be sent.
func (o *own) busy() bool {
	return o.beat || o.leave || o.list || len(o.changes)+len(o.facts)+len(o.wakes) > 0
}

// take returns what is to be sent at that time, with the list and the beat if they are.
func (o *own) take(now time.Duration) (p pending, list []share, beat message) {
	p, o.pending = o.pending, pending{}
	passed := o.last // facts up to this number have been sent, or never will be
	if len(p.facts) > maxBatch {
		p.facts, o.facts = p.facts[:maxBatch:maxBatch], p.facts[maxBatch:]
		passed = o.facts[0].Seq - 1
	}
	if p.list {
		list = slices.SortedFunc(maps.Values(o.holds), func(a, b share) int { return cmp.Compare(a.id, b.id) })
	}
	for a := range o.asks {
		if a.beat == 0 && a.last <= passed {
			a.beat, p.beat = o.beats+1, true
		}
	}
	if p.beat {
		o.beats++
		beat = message{Is: isBeat, Sent: now, Last: passed, Held: len(o.holds), Digest: o.digest}
		if len(o.asks) > 0 {
			beat.Ask = o.beats
		}
	}
	return p, list, beat
}

// mix spreads the bits of an id, so that the digest of a set is the XOR of its ids.
func mix(id uint64) uint64 {
	id += 0x9e3779b97f4a7c15
	id = (id ^ id>>30) * 0xbf58476d1ce4e5b9
	id = (id ^ id>>27) * 0x94d049bb133111eb
	return id ^ id>>31
}
