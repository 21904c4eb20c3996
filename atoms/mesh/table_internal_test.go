package mesh

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func testTable() *table {
	return &table{
		run: "5", name: "here", lease: 100, maxLate: 100, maxRate: -1, origins: map[string]*origin{}, counted: map[string]*origin{},
		accepts: func(name string) bool { return name != "refused" },
	}
}

// world is a model: an origin whose messages are delayed, lost and reordered with others, and
// what a receiver may hold of it. Clocks differ by an hour.
type world struct {
	t        *testing.T
	r        *rand.Rand
	now      int64
	sender   own
	ids      uint64
	table    *table
	way      []sent
	released map[uint64]int64 // when it was released
	shown    map[*hold]bool   // what stands at the receiver, from its effects
	lastBeat int64            // when the newest beat that has come was sent
	raised   []uint64
	base     uint64 // the number before the first that can be heard
	quiet    bool   // nothing is lost or late
}

type sent struct {
	at, by int64 // when it was sent, and when it arrives
	m      message
}

const (
	hour      = int64(time.Hour)
	beatEvery = 25
)

// send takes what there is, and puts it on its way.
func (w *world) send() {
	p, list, beat := w.sender.take()
	named := func(all []share) (items []item) {
		for _, s := range all {
			items = append(items, item{ID: s.id, Name: "a"})
		}
		return items
	}
	for _, s := range p.fresh {
		w.put(message{Is: isHeld, Items: named([]share{s})})
	}
	for _, id := range p.ended {
		w.put(message{Is: isHeld, Ended: []uint64{id}})
	}
	for from := uint64(0); p.list && from < math.MaxUint64; { // in up to three parts
		m := message{Is: isHeld, From: from, Upto: math.MaxUint64}
		if n := 1 + w.r.IntN(len(list)+1); n < len(list) {
			m.Upto, m.Items, list = list[n-1].id, named(list[:n]), list[n:]
		} else {
			m.Items = named(list)
		}
		w.put(m)
		from = m.Upto
	}
	if len(p.facts) > 0 {
		m := message{Is: isFacts}
		for _, f := range p.facts {
			m.Items = append(m.Items, item{ID: f.Seq, Name: "a"})
		}
		w.put(m)
	}
	if beat.Is != "" {
		w.put(beat)
	}
}

// put delays a message, behind the others.
func (w *world) put(m message) {
	m.Node, m.Run, m.Sent = "there", "3", w.now+hour
	by := w.now + 1
	if !w.quiet {
		by += w.r.Int64N(5)
	}
	if !w.quiet && w.r.IntN(30) == 0 {
		by += w.r.Int64N(400) // a cut
	}
	for _, s := range w.way {
		by = max(by, s.by)
	}
	if w.quiet || w.r.IntN(20) > 0 { // else it is lost
		w.way = append(w.way, sent{w.now, by, m})
	}
}

// arrive delivers what is due, and checks what follows from it.
func (w *world) arrive() {
	w.way = slices.DeleteFunc(w.way, func(s sent) bool {
		if s.by > w.now {
			return false
		}
		w.lastBeat = max(w.lastBeat, s.at)
		if s.m.Is != isFacts {
			need := w.table.state(w.now, &s.m)
			w.sender.list = w.sender.list || need
			if s.m.Is != isBeat {
				return true
			}
		}
		before := w.table.origins["3"]
		known := before != nil && before.started
		o := w.table.arrive(w.now, &s.m)
		if !known {
			w.base = o.last
		}
		for i := range s.m.Items {
			if it := &s.m.Items[i]; w.table.admit(w.now, o, it, s.m.Sent) {
				require.LessOrEqual(w.t, w.now-s.at, w.table.maxLate+w.fastest(), "too old")
				w.raised = append(w.raised, it.ID)
			}
		}
		if s.m.Is == isBeat {
			o.pass(s.m.Last)
		}
		return true
	})
	w.table.expire(w.now)
	for _, e := range w.table.effects {
		switch {
		case e.begins != nil:
			w.shown[e.begins] = true
		case e.ends != nil:
			require.True(w.t, w.shown[e.ends], "ended twice")
			delete(w.shown, e.ends)
		}
	}
	w.table.effects = nil
	ids := map[uint64]bool{}
	for h := range w.shown {
		require.False(w.t, ids[h.item.ID], "held twice")
		ids[h.item.ID] = true
		require.Less(w.t, w.now, w.lastBeat+w.table.lease+w.fastest(), "held without a beat")
		if at, ok := w.released[h.item.ID]; ok {
			require.Less(w.t, w.now, at+beatEvery+w.table.lease+w.fastest(), "released long ago") // a hold and its release may wait for the next beat
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
		seeds = 100
	}
	for seed := range seeds {
		w := &world{
			t: t, r: rand.New(rand.NewPCG(seed, 1)), table: testTable(), sender: own{holds: map[uint64]share{}},
			released: map[uint64]int64{}, shown: map[*hold]bool{}, lastBeat: math.MinInt64 / 2,
		}
		step := func() {
			w.now++
			if w.now%beatEvery == 0 {
				w.sender.beat = true
			}
			if w.r.IntN(2) == 0 || w.sender.beat {
				w.send()
			}
			w.arrive()
		}
		for i := range 2000 {
			w.quiet = i <= beatEvery // age counts from the fastest message
			switch w.r.IntN(20) {
			case 0:
				w.ids++
				w.sender.hold(share{id: w.ids})
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
		for h := range w.shown {
			require.Contains(t, w.sender.holds, h.item.ID)
		}
		require.True(t, slices.IsSorted(w.raised) && len(slices.Compact(slices.Clone(w.raised))) == len(w.raised), "seed %d", seed)
		o := w.table.origins["3"]
		require.Equal(t, w.sender.last-w.base, uint64(len(w.raised))+o.lost(), "seed %d", seed)
	}
}

// What the model does not send: messages that come twice or too late, and lists that end facts.
func TestTable(t *testing.T) {
	b := testTable()
	at := func(now int64, m message) (need bool) {
		m.Node, m.Run, m.Sent = "there", "3", now
		return b.state(now, &m)
	}
	held := func() []uint64 { return slices.Sorted(maps.Keys(b.origins["3"].holds)) }
	at(0, message{Is: isHeld, Items: []item{{ID: 1, Name: "a"}, {ID: 2, Name: "a"}, {ID: 3, Name: "refused"}, {ID: 4, Name: "a"}}})
	assert.Len(t, b.effects, 3)
	at(1, message{Is: isHeld, From: 1, Upto: 3})
	assert.Equal(t, []uint64{1, 4}, held(), "a part says nothing about others")
	assert.False(t, at(1, message{Is: isBeat, Held: 2, Digest: mix(1) ^ mix(4)}))

	o := b.arrive(1, &message{Node: "there", Run: "3", Sent: 1, Items: []item{{ID: 7}}})
	assert.True(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 1))
	assert.False(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 1), "twice")
	assert.False(t, b.admit(1, o, &item{ID: 8, Name: "a", Age: 101}, 1), "it waited at its node")
	assert.False(t, b.admit(1, o, &item{ID: 9, Name: "a", Age: math.MaxInt64}, -math.MaxInt64/2), "no overflow")
	assert.EqualValues(t, 2, o.lost())

	now, sent := int64(1), int64(1)
	for range 100 { // the clock of the node is slow, and it is silent for an hour
		now, sent = now+hour, sent+hour-hour/2000
		assert.Zero(t, o.age(now, sent))
	}
	assert.EqualValues(t, time.Minute, o.age(now, sent-int64(time.Minute)))

	at(now, message{Is: isLeave})
	assert.Empty(t, held())
	at(now+1, message{Is: isBeat})
	assert.Empty(t, b.counted, "it has left")
}

// A Flush asks after all that was raised before it.
func TestAskAfterFacts(t *testing.T) {
	o := own{asks: map[*ask]bool{}}
	for range maxBatch + 2 {
		o.raise(core.Signal{}, maxBatch+1)
	}
	o.asks[new(ask)], o.asked = true, o.last+1
	_, _, beat := o.take()
	assert.Zero(t, beat.Ask)
	_, _, beat = o.take()
	assert.NotZero(t, beat.Ask)
	assert.EqualValues(t, maxBatch+2, beat.Last, "what was not sent is passed as well")
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
	m := &Mesh{bus: wire{e, "one"}, table: &table{run: strings.Repeat("f", 32)}, opts: Options{Cluster: "test", Name: string(make([]byte, maxName))}}
	e.subs = []*subscriber{{pattern: "*"}}
	var p pending
	for id := range uint64(3 * maxBatch) {
		p.ended, p.fresh = append(p.ended, math.MaxUint64-id), append(p.fresh, share{data: make([]byte, 60)})
	}
	p.fresh, p.list = append(p.fresh, share{data: make([]byte, maxItems-1)}), true
	m.sendHeld(&p, p.fresh)
	assert.Greater(t, largest, maxItems)
	assert.LessOrEqual(t, largest, maxMessage)
}
