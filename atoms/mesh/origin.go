package mesh

import "math"

// clockWindow is how long the smallest difference of two clocks counts at least: clocks drift.
const clockWindow = 10 * 60 * 1_000_000_000

// Losses count signals that were not raised here, although a node has shared them.
type Losses struct {
	Missed uint64 `json:"missed"` // they did not arrive
	Late   uint64 `json:"late"`   // they were older than MaxLate
	Over   uint64 `json:"over"`   // they came faster than MaxRate
}

func (l *Losses) add(m Losses) {
	l.Missed += m.Missed
	l.Late += m.Late
	l.Over += m.Over
}

// origin is a run of a node.
type origin struct {
	run, name string
	heard     int64 // when the newest message was sent, by the clock here
	gone      bool  // it has said that it leaves

	least, before int64 // smallest difference of the clocks, in this window and in the last
	window        int64 // when this window began

	holds  map[uint64]*hold
	digest uint64
	proved int64 // when the beat was sent that said that holds is right

	started      bool   // a number is known
	last         uint64 // number of the newest fact
	told         uint64 // what of Missed was told
	second, this int64  // of the rate
	acked        *message
	flushed      uint64 // lost facts at the end of the last Flush
	Losses
}

// hold is a held fact of an origin, or of this node about itself.
type hold struct {
	node    string // "": this one
	item    *item  // nil: not accepted, it only counts for the digest
	proved  int64  // when the message was sent that has named it
	stands  bool   // of this node
	release func() // of the shell
}

func newOrigin(now int64, m *message) *origin {
	return &origin{
		run: m.Run, name: m.Node, heard: math.MinInt64, least: math.MaxInt64, before: math.MaxInt64, window: now,
		holds: map[uint64]*hold{}, acked: new(message),
	}
}

// age returns how long a message was under way, beyond the fastest one.
func (o *origin) age(now, sent int64) int64 {
	if now-o.window >= clockWindow {
		o.before, o.least, o.window = o.least, math.MaxInt64, now
	}
	o.least = min(o.least, now-sent)
	return max(0, now-sent-min(o.least, o.before))
}

// number notes the number of a fact, and counts those before it that have not come.
func (o *origin) number(n uint64) {
	if n > o.last {
		o.Missed += n - o.last - 1
		o.last = n
	}
}

func (o *origin) lost() uint64 { return o.Missed + o.Late + o.Over }
