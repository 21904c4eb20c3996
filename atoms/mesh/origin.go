package mesh

import "time"

// maxDrift is one in so many: two clocks run apart by no more.
const maxDrift = 1000

// Losses count signals that were not raised here, although a node has shared them.
type Losses struct {
	Missed uint64 `json:"missed"` // they did not arrive
	Late   uint64 `json:"late"`   // they were older than MaxLate
	Over   uint64 `json:"over"`   // they came faster than MaxRate
}

// origin is a run of a node.
type origin struct {
	run, name string
	heard     time.Duration // when the newest message was sent, by the clock here
	gone      bool          // it has said that it leaves

	least, at time.Duration // smallest difference of the clocks, when the last message came

	holds  map[uint64]*hold
	stand  int // how many of them are accepted
	digest uint64
	proved time.Duration // when the beat was sent that said that holds is right

	started bool          // a number is known
	last    uint64        // number of the newest fact
	told    uint64        // what of Missed was told
	second  time.Duration // of the rate
	this    int           // facts in it
	acked   *message
	flushed uint64 // lost facts at the end of the last Flush
	Losses
}

// hold is a held fact of an origin, or of this node about itself.
type hold struct {
	node    string        // "": this one
	item    *item         // nil: not accepted, it only counts for the digest
	proved  time.Duration // when the message was sent that has named it
	release func()        // of the shell
}

// age returns how long a message was under way, beyond the fastest one. Clocks drift, so the
// fastest one may have been slower, the longer ago it was.
func (o *origin) age(now, sent time.Duration) time.Duration {
	o.least, o.at = min(now-sent, o.least+(now-o.at)/maxDrift), now
	return max(0, now-sent-o.least)
}

func (o *origin) lost() uint64 { return o.Missed + o.Late + o.Over }
