package mesh

import (
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// own is what this node has to send: a plain structure without lock and clock.
type own struct {
	last    uint64   // number of the newest fact
	queue   []number // facts to be sent
	passed  uint64   // facts up to this number have been sent, or never will be
	unsent  uint64   // never sent
	sent    uint64
	holds   map[uint64]*ownHold
	ids     uint64 // of held facts so far
	digest  uint64
	ends    int64 // when the first lease in holds ends
	changes []change
	lists   uint64 // lists of all held facts so far

	beat, list bool            // to be sent
	asks       map[uint64]*ask // calls of Flush
	lastAsk    uint64
	replies    []reply
	wakes      map[string]bool
}

// number is a raised fact with its number.
type number struct {
	n      uint64
	signal core.Signal
}

// ownHold is a held fact of this node.
type ownHold struct {
	id    uint64
	data  []byte // the item
	until int64  // or math.MaxInt64
}

// change is a fact that is held from now on, or not any more.
type change struct {
	id   uint64
	held *ownHold // nil: it has ended
}

// reply is a message to one node.
type reply struct {
	run string
	m   message
}

// raise queues a fact. If most facts wait already, it is not sent, and the other nodes will
// count it as missed.
func (o *own) raise(s core.Signal, most int) {
	o.last++
	if len(o.queue) >= most {
		o.unsent++
		return
	}
	o.queue = append(o.queue, number{o.last, s})
}

// hold adds a held fact, unless it cannot be sent or there are too many.
func (o *own) hold(h *ownHold) {
	if h.data == nil || len(o.holds) >= maxHolds {
		o.unsent++
		return
	}
	o.holds[h.id] = h
	o.digest ^= mix(h.id)
	o.ends = min(o.ends, h.until)
	o.change(change{h.id, h})
}

// release ends a held fact.
func (o *own) release(id uint64) {
	if o.holds[id] == nil {
		return
	}
	delete(o.holds, id)
	o.digest ^= mix(id)
	o.change(change{id: id})
}

// change queues a change. If too many wait, the list of all held facts replaces them.
func (o *own) change(c change) {
	if o.changes = append(o.changes, c); len(o.changes) > maxHolds {
		o.changes, o.list = nil, true
	}
}

// expire ends the held facts whose leases have ended. After it, ends is when the next one does.
func (o *own) expire(now int64) {
	if now < o.ends {
		return
	}
	o.ends = math.MaxInt64
	for id, h := range o.holds {
		if h.until <= now {
			o.release(id)
		} else {
			o.ends = min(o.ends, h.until)
		}
	}
}

// work is what is to be sent now, in the order of its fields.
type work struct {
	changes []change
	list    [][]byte // all held facts, if listed
	listed  bool
	number  uint64 // of the list
	upto    uint64
	beat    bool
	facts   []number
	last    uint64
	held    int
	digest  uint64
	asks    []uint64
	replies []reply
	wakes   map[string]bool
}

// busy reports whether there is something to be sent.
func (o *own) busy() bool {
	return o.beat || o.list || len(o.changes)+len(o.queue)+len(o.replies)+len(o.wakes) > 0 || o.due() != nil
}

// due returns the asks that can be sent: all that was raised before them is.
func (o *own) due() (ids []uint64) {
	for id, a := range o.asks {
		if a.due && a.after <= o.passed {
			ids = append(ids, id)
		}
	}
	return ids
}

// take returns what is to be sent now.
func (o *own) take() work {
	w := work{changes: o.changes, listed: o.list, beat: o.beat, held: len(o.holds), digest: o.digest, replies: o.replies, wakes: o.wakes}
	if o.list {
		o.lists++
		w.number, w.upto = o.lists, o.ids
		for _, h := range o.holds {
			w.list = append(w.list, h.data)
		}
	}
	n := min(len(o.queue), maxBatch)
	w.facts = o.queue[:n:n]
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue, o.passed = nil, o.last
	} else {
		o.passed = o.queue[0].n - 1
	}
	w.last, w.asks = o.passed, o.due()
	for _, id := range w.asks {
		o.asks[id].due = false
	}
	o.changes, o.list, o.beat, o.replies, o.wakes = nil, false, false, nil, nil
	return w
}

// mix spreads the bits of an id, so that the digest of a set is the XOR of its ids.
func mix(id uint64) uint64 {
	id += 0x9e3779b97f4a7c15
	id = (id ^ id>>30) * 0xbf58476d1ce4e5b9
	id = (id ^ id>>27) * 0x94d049bb133111eb
	return id ^ id>>31
}

// stamps measures time since a start. It never falls behind real time: the clock of the
// system may be set, and the monotonic clock may stand still while the machine sleeps.
type stamps struct {
	last    time.Time
	elapsed int64
}

func (s *stamps) at(now time.Time) int64 {
	wall := now.Round(0).Sub(s.last.Round(0))
	s.elapsed += int64(max(0, now.Sub(s.last), wall))
	s.last = now
	return s.elapsed
}
