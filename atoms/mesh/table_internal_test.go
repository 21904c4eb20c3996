package mesh

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func testTable() *table {
	t := newTable("5", "here")
	t.lease, t.maxLate, t.maxRate = 100, 100, math.MaxInt
	t.accepts = func(name string) bool { return name != "refused" }
	return t
}

// world is a model: an origin whose messages are delayed, lost and reordered with others, and
// what a receiver may hold of it. Clocks differ by an hour.
type world struct {
	t        *testing.T
	r        *rand.Rand
	now      int64
	sender   own
	table    *table
	way      []sent
	released map[uint64]int64 // when it was released
	shown    map[uint64]bool  // what stands at the receiver, from its effects
	lastBeat int64            // when the newest beat that has come was sent
	raised   []uint64
	base     uint64 // the number before the first that can be heard
	quiet    bool   // nothing is lost or late
}

type sent struct {
	at, by int64 // when it was sent, and when it arrives
	facts  bool
	m      message
}

const hour = int64(time.Hour)

// send takes what there is, and puts it on its way.
func (w *world) send() {
	w.sender.expire(w.now)
	k := w.sender.take()
	stamp := w.now + hour
	var ms []message
	for _, c := range k.changes {
		if c.held != nil {
			ms = append(ms, message{Is: isChange, Items: []item{{ID: c.id, Name: "a"}}})
		} else {
			ms = append(ms, message{Is: isChange, Ended: []uint64{c.id}})
		}
	}
	if k.listed {
		parts := 1 + w.r.IntN(3)
		for i := range parts {
			m := message{Is: isPiece, List: k.number, Pieces: parts, Upto: k.upto}
			for id := range w.sender.holds {
				if id%uint64(parts) == uint64(i) {
					m.Items = append(m.Items, item{ID: id, Name: "a"})
				}
			}
			ms = append(ms, m)
		}
	}
	if k.beat {
		ms = append(ms, message{Is: isBeat, Held: k.held, Digest: k.digest})
	}
	facts := message{Is: isFacts, Last: k.last}
	for _, f := range k.facts {
		facts.Items = append(facts.Items, item{ID: f.n, Name: "a"})
	}
	for _, m := range append(ms, facts) {
		m.Node, m.Sent = "there", stamp
		w.put(m, m.Is == isFacts)
	}
}

// put delays a message, behind the others of its topic.
func (w *world) put(m message, facts bool) {
	by := w.now + 1
	if !w.quiet {
		by += w.r.Int64N(5)
	}
	if !w.quiet && w.r.IntN(30) == 0 {
		by += w.r.Int64N(400) // a cut
	}
	for _, s := range w.way {
		if s.facts == facts {
			by = max(by, s.by)
		}
	}
	if w.quiet || w.r.IntN(20) > 0 { // else it is lost
		w.way = append(w.way, sent{w.now, by, facts, m})
	}
}

// arrive delivers what is due, and checks what follows from it.
func (w *world) arrive() {
	w.way = slices.DeleteFunc(w.way, func(s sent) bool {
		if s.by > w.now {
			return false
		}
		w.lastBeat = max(w.lastBeat, s.at)
		if !s.facts {
			need, _ := w.table.state(w.now, "3", &s.m)
			w.sender.list = w.sender.list || need
			return true
		}
		before := w.table.origins["3"]
		known := before != nil && before.started
		o, age := w.table.arrive(w.now, "3", &s.m)
		if !known {
			w.base = o.last
		}
		for i := range s.m.Items {
			if it := &s.m.Items[i]; w.table.admit(w.now, o, it, age) {
				require.LessOrEqual(w.t, w.now-s.at, w.table.maxLate+w.fastest(), "too old")
				w.raised = append(w.raised, it.ID)
			}
		}
		w.table.passed(o, s.m.Last)
		return true
	})
	w.table.expire(w.now)
	for _, e := range w.table.effects {
		switch {
		case e.begins != nil:
			require.False(w.t, w.shown[e.begins.id], "held twice")
			w.shown[e.begins.id] = true
		case e.ends != nil:
			require.True(w.t, w.shown[e.ends.id], "ended twice")
			delete(w.shown, e.ends.id)
		}
	}
	w.table.effects = nil
	for id := range w.shown {
		require.Less(w.t, w.now, w.lastBeat+w.table.lease+w.fastest(), "held without a beat")
		if at, ok := w.released[id]; ok {
			require.Less(w.t, w.now, at+w.table.lease+w.fastest()+10, "released long ago")
		}
	}
}

// fastest is how long the fastest message was under way.
func (w *world) fastest() int64 { return w.table.origins["3"].least + hour }

// In random schedules, a receiver holds nothing that is not proved, raises each fact once and in
// order, counts all others, and holds the same when all is quiet.
func TestTableModel(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	} else if os.Getenv("EPHEMERAL_LONG") != "" && !coretest.Race {
		seeds = 300
	}
	for seed := range seeds {
		w := &world{
			t: t, r: rand.New(rand.NewPCG(seed, 1)), table: testTable(), sender: own{holds: map[uint64]*ownHold{}, ends: math.MaxInt64},
			released: map[uint64]int64{}, shown: map[uint64]bool{}, lastBeat: math.MinInt64 / 2,
		}
		step := func() {
			w.now++
			if w.now%25 == 0 {
				w.sender.beat = true
			}
			if w.r.IntN(2) == 0 || w.sender.beat {
				w.send()
			}
			w.arrive()
		}
		for range 2000 {
			switch w.r.IntN(20) {
			case 0:
				w.sender.ids++
				w.sender.hold(&ownHold{w.sender.ids, []byte{}, math.MaxInt64})
			case 1:
				for id := range w.sender.holds {
					w.released[id] = w.now
					w.sender.release(id)
					break
				}
			case 2, 3:
				w.sender.raise(core.Signal{Name: "a"}, 1000)
			}
			step()
		}
		w.quiet = true
		for range 600 {
			step()
		}
		require.Len(t, w.shown, len(w.sender.holds), "seed %d", seed)
		for id := range w.sender.holds {
			require.True(t, w.shown[id])
		}
		require.True(t, slices.IsSorted(w.raised) && len(slices.Compact(slices.Clone(w.raised))) == len(w.raised), "seed %d", seed)
		o := w.table.origins["3"]
		require.Equal(t, w.sender.last-w.base, uint64(len(w.raised))+o.lost(), "seed %d", seed)
	}
}

// What the model does not send: messages that come twice or too late, and lists that end facts.
func TestTable(t *testing.T) {
	b := testTable()
	at := func(now int64, m message) (need, known bool) {
		m.Node, m.Sent = "there", now
		return b.state(now, "3", &m)
	}
	held := func() (ids []uint64) {
		for id := range b.origins["3"].holds {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	at(0, message{Is: isChange, Items: []item{{ID: 1, Name: "a"}, {ID: 2, Name: "a"}, {ID: 3, Name: "refused"}, {ID: 4, Name: "a"}}})
	assert.Len(t, b.effects, 3)
	at(1, message{Is: isPiece, List: 1, Pieces: 1, Upto: 3, Items: []item{{ID: 1, Name: "a"}}})
	assert.Equal(t, []uint64{1, 4}, held(), "4 is newer than the list")
	need, _ := at(1, message{Is: isBeat, Held: 2, Digest: mix(1) ^ mix(4)})
	assert.False(t, need)

	o, _ := b.arrive(1, "3", &message{Node: "there", Sent: 1, Items: []item{{ID: 7}}})
	assert.True(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 0))
	assert.False(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 0), "twice")
	assert.False(t, b.admit(1, o, &item{ID: 8, Name: "a", Age: 101}, 0), "it waited at its node")
	assert.False(t, b.admit(1, o, &item{ID: 9, Name: "a", Age: math.MaxInt64}, math.MaxInt64/2), "no overflow")
	assert.EqualValues(t, 2, o.lost())

	const drift = clockWindow + 50 // the clock of the node is slower and slower
	for i := range int64(4) {
		o.age(i*drift, i*clockWindow)
	}
	assert.Less(t, o.age(4*drift, 4*clockWindow), int64(3*50))

	at(4*drift, message{Is: isLeave})
	assert.Empty(t, held())
	at(4*drift+1, message{Is: isBeat})
	assert.Zero(t, b.alive(), "it has left")
}

// A Flush asks after all that was raised before it.
func TestAskAfterFacts(t *testing.T) {
	o := own{asks: map[uint64]*ask{7: {after: maxBatch + 1, due: true}}}
	for range maxBatch + 2 {
		o.raise(core.Signal{}, maxBatch+1)
	}
	assert.Empty(t, o.take().asks)
	w := o.take()
	assert.Equal(t, []uint64{7}, w.asks)
	assert.EqualValues(t, maxBatch+2, w.last, "what was not sent is passed as well")
	assert.False(t, o.busy())
}

func TestStamps(t *testing.T) {
	start := time.Now()
	s := stamps{last: start}
	assert.EqualValues(t, time.Second, s.at(start.Add(time.Second)))
	wall := func(d time.Duration) time.Time { return start.Add(d).Round(0) } // without the monotonic clock
	s.last = wall(time.Second)
	assert.EqualValues(t, time.Hour, s.at(wall(time.Hour)), "set forward, or the machine slept")
	assert.EqualValues(t, time.Hour, s.at(wall(time.Minute)), "set back")
	assert.EqualValues(t, time.Hour+time.Second, s.at(wall(time.Minute+time.Second)))
}

// No message is larger than receivers accept, and a batch has room for its largest fact.
func TestMessagesFit(t *testing.T) {
	e := &ether{t: t, cut: map[string]bool{}}
	largest := 0
	e.lose = func(_, _, _ string, data []byte) bool { largest = max(largest, len(data)); return true }
	m := &Mesh{bus: wire{e, "one"}, table: newTable("1", ""), opts: Options{Cluster: "test", Name: string(make([]byte, maxName))}, clock: time.Now}
	e.subs = []*subscriber{{pattern: "*"}}
	var w work
	for id := range uint64(3 * maxBatch) {
		w.changes = append(w.changes, change{id: math.MaxUint64 - id}, change{held: &ownHold{data: make([]byte, 30)}})
	}
	w.changes = append(w.changes, change{held: &ownHold{data: make([]byte, maxItems-1)}})
	m.sendHeld(&w)
	assert.Empty(t, w.changes)
	assert.Greater(t, largest, maxItems)
	assert.LessOrEqual(t, largest, maxMessage)
}
