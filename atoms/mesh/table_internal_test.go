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

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func testTable() *table {
	return &table{
		opts: Options{Name: "here", Lease: 100, MaxLate: 100, MaxRate: -1, Accept: "a"},
		run:  "5", origins: map[string]*origin{}, counted: map[string]*origin{},
	}
}

// world is a model: an origin whose messages are delayed, lost and reordered with others, and
// what a receiver may hold of it. Clocks differ by an hour.
type world struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Duration
	sender   own
	ids      uint64
	table    *table
	way      []sent
	released map[uint64]time.Duration // when it was released
	shown    map[*hold]bool           // what stands at the receiver, from its effects
	lastBeat time.Duration            // when the newest beat that has come was sent
	raised   []uint64
	base     uint64 // the number before the first that can be heard
	quiet    bool   // nothing is lost or late
}

type sent struct {
	at, by time.Duration // when it was sent, and when it arrives
	m      message
}

const (
	hour      = time.Hour
	beatEvery = 25
)

// send takes what there is, and puts it on its way.
func (w *world) send() {
	p, list, beat := w.sender.take(0)
	named := func(all []share) (items []item) {
		for _, s := range all {
			it := item{ID: s.id, Name: "a"}
			if s.data != nil { // that of a release
				it.Name = ""
			}
			items = append(items, it)
		}
		return items
	}
	for _, s := range p.changes {
		w.put(message{Is: isHeld, Items: named([]share{s})})
	}
	for from := uint64(0); p.list && from < math.MaxUint64; { // in up to three parts
		m := message{Is: isList, From: from, Upto: math.MaxUint64}
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
		by += time.Duration(w.r.IntN(5))
	}
	if !w.quiet && w.r.IntN(30) == 0 {
		by += time.Duration(w.r.IntN(400)) // a cut
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
				require.LessOrEqual(w.t, w.now-s.at, w.table.opts.MaxLate+w.fastest(), "too old")
				w.raised = append(w.raised, it.ID)
			}
		}
		if s.m.Is == isBeat {
			w.table.pass(o, s.m.Last)
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
		require.Less(w.t, w.now, w.lastBeat+w.table.opts.Lease+w.fastest(), "held without a beat")
		if at, ok := w.released[h.item.ID]; ok {
			require.Less(w.t, w.now, at+beatEvery+w.table.opts.Lease+w.fastest(), "released long ago") // a hold and its release may wait for the next beat
		}
	}
}

// fastest is how long the fastest message was under way.
func (w *world) fastest() time.Duration { return w.table.origins["3"].least + hour }

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
			t: t, r: rand.New(rand.NewPCG(seed, 1)), table: testTable(), sender: own{holds: map[uint64]share{}, room: maxItems},
			released: map[uint64]time.Duration{}, shown: map[*hold]bool{}, lastBeat: math.MinInt64 / 2,
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
				w.sender.holds[w.ids] = share{id: w.ids}
				w.sender.change(share{id: w.ids})
			case 1:
				for id := range w.sender.holds {
					w.released[id] = w.now
					w.sender.release(id)
					break
				}
			case 2, 3:
				w.sender.raise(signals.Signal{Name: "a"}, 1000)
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
	at := func(now time.Duration, m message) (need bool) {
		m.Node, m.Run, m.Sent = "there", "3", now
		return b.state(now, &m)
	}
	held := func() []uint64 { return slices.Sorted(maps.Keys(b.origins["3"].holds)) }
	at(0, message{Is: isHeld, Items: []item{{ID: 1, Name: "a"}, {ID: 2, Name: "a"}, {ID: 3, Name: "refused"}, {ID: 4, Name: "a"}}})
	assert.Len(t, b.effects, 3)
	at(1, message{Is: isList, From: 1, Upto: 3})
	assert.Equal(t, []uint64{1, 4}, held(), "a part says nothing about others")
	assert.False(t, at(1, message{Is: isBeat, Held: 2, Digest: mix(1) ^ mix(4)}))

	o := b.arrive(1, &message{Node: "there", Run: "3", Sent: 1, Items: []item{{ID: 7}}})
	assert.True(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 1))
	assert.False(t, b.admit(1, o, &item{ID: 7, Name: "a"}, 1), "twice")
	assert.False(t, b.admit(1, o, &item{ID: 8, Name: "a", Age: 101}, 1), "it waited at its node")
	assert.False(t, b.admit(1, o, &item{ID: 9, Name: "a", Age: math.MaxInt64}, -math.MaxInt64/2), "no overflow")
	b.opts.MaxRate, b.opts.Accept = 2, "*"
	assert.True(t, b.admit(1, o, &item{ID: 10, Name: "a"}, 1), "what is too old does not count")
	assert.False(t, b.admit(1, o, &item{ID: 11, Name: "a"}, 1))
	assert.EqualValues(t, 3, o.lost())
	b.opts.MaxRate = -1
	for i, name := range []string{"", "mesh.lost", strings.Repeat("x", maxName+1)} {
		assert.False(t, b.admit(1, o, &item{ID: uint64(12 + i), Name: name}, 1))
	}

	for range 2 * maxEffects { // a handler does not return
		at(1, message{Is: isHeld, Items: []item{{ID: 5, Name: "a"}, {ID: 5}}})
		at(1, message{Is: isBeat})
	}
	assert.LessOrEqual(t, len(b.effects), maxEffects+1)
	b.effects = nil

	now, sent := time.Duration(1), time.Duration(1)
	for range 100 { // the clock of the node is slow, and it is silent for an hour
		now, sent = now+hour, sent+hour-hour/2000
		assert.Zero(t, o.age(now, sent))
	}
	assert.EqualValues(t, time.Minute, o.age(now, sent-time.Minute))

	at(now, message{Is: isLeave})
	assert.Empty(t, held())
	at(now+1, message{Is: isBeat})
	assert.Empty(t, b.counted, "it has left")
}

// A Flush asks after all that was raised before it.
func TestAskAfterFacts(t *testing.T) {
	o := own{asks: map[*ask]bool{}}
	for range maxBatch + 2 {
		o.raise(signals.Signal{}, maxBatch+1)
	}
	a := &ask{last: o.last}
	o.asks[a] = true
	_, _, beat := o.take(0)
	assert.Zero(t, beat.Ask)
	_, _, beat = o.take(0)
	assert.Equal(t, a.beat, beat.Ask)
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
	var items []share
	for id := range uint64(3 * maxBatch) {
		items = append(items, share{math.MaxUint64 - id, make([]byte, 60)})
	}
	m.publish(topicState, message{Is: isList, Sent: math.MaxInt64}, append(items, share{data: make([]byte, maxItems-1)}))
	assert.Greater(t, largest, maxItems)
	assert.LessOrEqual(t, largest, maxMessage)
}
