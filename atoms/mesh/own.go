package mesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// own is what this node shares: a plain structure without lock and clock.
type own struct {
	last         uint64 // number of the newest fact
	sent, unsent uint64
	holds        map[uint64]share
	digest       uint64
	beats        uint64 // so far
	asks         map[*ask]bool
	asked        uint64 // one more than what is to be sent before a beat asks; 0: none has to
	pending
}

// pending is what is to be sent, in the order of its fields.
type pending struct {
	fresh []share       // held from now on
	ended []uint64      // and not any more
	list  bool          // all held facts
	facts []core.Signal // Seq is the number
	beat  bool
	wakes []string
}

// raise queues a fact. If most facts wait already, it is not sent, and the other nodes will
// count it as missed.
func (o *own) raise(s core.Signal, most int) {
	o.last++
	if len(o.facts) >= most {
		o.unsent++
		return
	}
	s.Seq = o.last
	o.facts = append(o.facts, s)
}

// hold adds a held fact, unless it cannot be sent or there are too many.
func (o *own) hold(s share) {
	if s.data == nil || len(o.holds) >= maxHolds {
		o.unsent++
		return
	}
	o.holds[s.id] = s
	o.digest ^= mix(s.id)
	if o.fresh = append(o.fresh, s); len(o.fresh) > maxHolds {
		o.fresh, o.ended, o.list = nil, nil, true // the list says it, too
	}
}

// release ends a held fact.
func (o *own) release(id uint64) {
	if _, held := o.holds[id]; held {
		delete(o.holds, id)
		o.digest ^= mix(id)
		o.ended = append(o.ended, id)
	}
}

// wake queues a wake-up, once.
func (o *own) wake(queue string) {
	if !slices.Contains(o.wakes, queue) {
		o.wakes = append(o.wakes, queue)
	}
}

// busy reports whether there is something to be sent.
func (o *own) busy() bool {
	return o.beat || o.list || o.asked > 0 || len(o.fresh)+len(o.ended)+len(o.facts)+len(o.wakes) > 0
}

// take returns what is to be sent now, with the list and the beat if they are.
func (o *own) take() (p pending, list []share, beat message) {
	p, o.pending = o.pending, pending{}
	passed := o.last // facts up to this number have been sent, or never will be
	if len(p.facts) > maxBatch {
		p.facts, o.facts = p.facts[:maxBatch:maxBatch], p.facts[maxBatch:]
		passed = o.facts[0].Seq - 1
	}
	if p.list {
		list = slices.SortedFunc(maps.Values(o.holds), func(a, b share) int { return cmp.Compare(a.id, b.id) })
	}
	if o.asked > 0 && o.asked <= passed+1 {
		p.beat, o.asked = true, 0
	}
	if p.beat {
		o.beats++
		beat = message{Is: isBeat, Last: passed, Held: len(o.holds), Digest: o.digest}
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
