package signals_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Random calls on a sink and on a simple model of it, an unbounded list of facts that is searched for every
// question. Both must say the same.
func TestSinkModel(t *testing.T) {
	const steps = 400
	for seed := range uint64(long.Often(1000, 40)) {
		synctest.Test(t, func(t *testing.T) {
			m := newSinkModel(t, seed)
			defer m.end()
			for range steps {
				m.step()
				m.ask()
				if seed%4 == 0 { // not always, because it lets signals expire
					m.law()
				}
			}
			m.compare()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type sinkFact struct {
	name, key string
	op        *sinkModelOp // nil: raised directly on the sink
	seq       uint64
	at        time.Time
	until     time.Time // of a lease
	held      bool
	restored  bool
	aged      bool // its place in the window is too old
	expired   bool // by age or lease
	evicted   bool // pushed out by newer ones
	kept      bool // the same, but kept for the gate
	removed   bool // retracted, released, forgotten, or gone with its operation
	own       bool // still shown by its operation
	dropped   bool // pushed out of what its operation shows
	release   func()
}

type sinkModelOp struct {
	*core.Operation
	finish func()
}

type sinkModelMonitor struct {
	*signals.Monitor
	pattern string
	span    time.Duration
	seen    []*sinkFact
	last    *sinkFact // nil: none, or it was taken back
}

type sinkModel struct {
	t        *testing.T
	seed     uint64
	rand     *rand.Rand
	log      []string
	sink     *signals.Sink
	owner    *core.Coordinator[chan struct{}] // of ops
	gated    *core.Coordinator[int]
	ops      []*sinkModelOp
	started  chan *core.Operation
	capacity int
	maxAge   time.Duration
	next     uint64 // Seq
	others   int    // restored signals that are still there: see SinkStats
	facts    []*sinkFact
	monitors []*sinkModelMonitor
	heard    int
	want     int          // to be heard
	told     atomic.Int64 // retractions, told on goroutines of several operations
	taken    int          // facts that were taken back
}

var (
	modelNames    = []string{"x", "x.y", "x.y.z", "y", "z:1", "z:2"}
	modelKeys     = []string{"", "", "k1", "k2"}
	modelPatterns = []string{"x", "x*", "x.*", "*", "y, z:*", "u.*", "?", "none", "x.y", "x.?", "", ","}
	modelSpans    = []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Hour}
)

const modelGate = "x.*, y"

// One in modelFloods seeds has operations with many signals.
const modelFloods = 25

func newSinkModel(t *testing.T, seed uint64) *sinkModel {
	m := &sinkModel{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), started: make(chan *core.Operation)}
	m.capacity, m.maxAge = m.capacities(), m.ages()
	m.sink = signals.NewSink(signals.SinkOptions{Capacity: m.capacity, MaxAge: cmp.Or(m.maxAge, -1)})
	m.owner = core.Must(core.NewCoordinator(func(ctx context.Context, finish chan struct{}) error {
		m.started <- core.OperationFrom(ctx)
		<-finish
		return nil
	}, core.Options{Name: "owner", Sink: m.sink, MaxConcurrency: 100, MaxAge: -1}))
	m.gated = core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
		core.Options{Name: "gated", Sink: m.sink, MaxQueued: 1, CancelOn: modelGate}))
	m.gated.Pause() // so that it refuses or is full, and runs nothing
	m.add(&sinkFact{name: core.SignalPaused, key: "gated", seq: 1})
	m.next = 2
	m.sink.Subscribe("x*", func(signals.Signal) { m.heard++ })
	m.sink.SubscribeRetracted("*", func(signals.Retraction) { m.told.Add(1) })
	return m
}

func (m *sinkModel) capacities() int {
	return []int{1, 2, 3, 5, 8, 13, 16, 33, 100}[m.rand.IntN(9)]
}

func (m *sinkModel) ages() time.Duration {
	return []time.Duration{0, 0, time.Millisecond, 20 * time.Millisecond, time.Second}[m.rand.IntN(5)]
}

func (m *sinkModel) end() {
	for _, o := range m.ops {
		o.finish()
	}
	m.owner.Close()
	m.gated.Close()
}

func (m *sinkModel) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d: %s\nafter\n\t%s", m.seed, fmt.Sprintf(format, args...),
		strings.Join(m.log[max(0, len(m.log)-40):], "\n\t"))
}

func (m *sinkModel) did(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func pick[E any](m *sinkModel, from []E) E { return from[m.rand.IntN(len(from))] }

func (m *sinkModel) name() string {
	if m.rand.IntN(5) == 0 {
		return fmt.Sprintf("u.%d", m.next)
	}
	return pick(m, modelNames)
}

// add is a fact that takes a place in the window.
func (m *sinkModel) add(f *sinkFact) {
	m.settle()
	if f.at.IsZero() {
		f.at = time.Now()
	}
	m.facts = append(m.facts, f)
	m.evict()
	if f.restored {
		m.others++
		return
	}
	if signals.Match("x*", f.name) {
		m.want++
	}
	for _, o := range m.monitors {
		if signals.Match(o.pattern, f.name) {
			o.seen, o.last = append(o.seen, f), f
		}
	}
}

// evict marks what is not among the newest places.
func (m *sinkModel) evict() {
	for _, f := range m.facts {
		if !f.held && f.seq+uint64(m.capacity) <= m.facts[len(m.facts)-1].seq {
			m.pushOut(f)
		}
	}
}

// pushOut marks a fact for which there is no room.
func (m *sinkModel) pushOut(f *sinkFact) {
	if f.kept || !f.visible() || !signals.Match(modelGate, f.name) {
		f.evicted = f.evicted || !f.kept
		return
	}
	f.kept = true
	kept := m.visible(func(f *sinkFact) bool { return f.kept })
	if len(kept) > 256 {
		kept[0].evicted = true
	}
}

// raisedBy is a fact that an operation has raised, beyond the newest thousand of
// which it drops the oldest.
func (m *sinkModel) raisedBy(o *sinkModelOp, name, key string) {
	o.RaiseKey(name, key)
	m.add(&sinkFact{name: name, key: key, op: o, seq: m.seq(), own: true})
	var shown []*sinkFact
	for _, f := range m.facts {
		if f.op == o && f.own && !f.held && !f.restored {
			shown = append(shown, f)
		}
	}
	if len(shown) > 1000 {
		shown[0].own, shown[0].dropped = false, true
		m.pushOut(shown[0])
	}
}

// settle marks what has expired by now.
func (m *sinkModel) settle() {
	now := time.Now()
	for _, f := range m.facts {
		f.aged = f.aged || m.maxAge > 0 && now.Sub(f.at) >= m.maxAge
		if f.held {
			f.expired = f.expired || !f.until.IsZero() && !now.Before(f.until)
		} else {
			f.expired = f.aged
		}
	}
}

// leave marks a fact that is retracted, released or forgotten, or leaves with its operation.
func (m *sinkModel) leave(f *sinkFact) {
	if m.settle(); f.visible() {
		m.others--
	}
	f.removed = true
}

func (f *sinkFact) visible() bool { return !f.expired && !f.evicted && !f.removed }

func (m *sinkModel) visible(accepts func(*sinkFact) bool) (found []*sinkFact) {
	m.settle()
	for _, f := range m.facts {
		if f.visible() && accepts(f) {
			found = append(found, f)
		}
	}
	return found
}

// uncount does for monitors what a retraction does.
func (m *sinkModel) uncount(f *sinkFact) {
	m.taken++
	for _, o := range m.monitors {
		o.seen = slices.DeleteFunc(o.seen, func(have *sinkFact) bool { return have == f })
		if o.last == f {
			o.last = nil
		}
	}
}

func (m *sinkModel) seq() uint64 {
	m.next++
	return m.next - 1
}

func (m *sinkModel) step() {
	s := m.sink
	m.settle()
	switch n := m.rand.IntN(100); {
	case n < 40:
		name, key := m.name(), pick(m, modelKeys)
		m.did("raise %s %q", name, key)
		s.RaiseKey(name, key)
		m.add(&sinkFact{name: name, key: key, seq: m.seq()})
	case n < 55:
		o := m.someOp()
		name, key := m.name(), pick(m, modelKeys)
		m.did("operation %d raises %s %q", o.ID(), name, key)
		m.raisedBy(o, name, key)
		if m.seed%modelFloods == modelFloods-1 && m.rand.IntN(20) == 0 {
			m.did("and 600 more")
			for range 600 {
				m.raisedBy(o, pick(m, modelNames), key)
			}
		}
	case n < 61:
		name, key, lease := m.name(), pick(m, modelKeys), pick(m, modelSpans)
		m.did("hold %s %q for %v", name, key, lease)
		f := &sinkFact{name: name, key: key, held: true, seq: m.seq()}
		if lease > 0 {
			f.until = time.Now().Add(lease)
		}
		f.release = s.Hold(name, key, lease)
		m.add(f)
	case n < 64:
		o := m.someOp()
		name, lease := m.name(), pick(m, modelSpans)
		m.did("operation %d holds %s for %v", o.ID(), name, lease)
		f := &sinkFact{name: name, held: true, op: o, seq: m.seq(), own: true}
		if lease > 0 {
			f.until = time.Now().Add(lease)
		}
		f.release = o.Hold(name, lease)
		m.add(f)
	case n < 69:
		var held []*sinkFact
		for _, f := range m.facts {
			if f.held {
				held = append(held, f) // released ones as well
			}
		}
		if len(held) > 0 {
			f := pick(m, held)
			m.did("release %d", f.seq)
			f.release()
			m.releases(f)
		}
	case n < 73:
		pattern := pick(m, modelPatterns)
		gone := m.visible(func(f *sinkFact) bool {
			return (f.op == nil || f.restored) && !f.held && signals.Match(pattern, f.name)
		})
		m.did("retract %s", pattern)
		if got := s.Retract(pattern); got != len(gone) {
			m.fatalf("got %d retracted, want %d", got, len(gone))
		}
		for _, f := range gone {
			m.leave(f)
			m.uncount(f)
		}
	case n < 78:
		m.operationRetracts()
	case n < 80:
		q := m.query()
		q.Held = m.rand.IntN(3) == 0
		accepts := func(f *sinkFact) bool { return !f.held && m.accepts(q, f) }
		gone := m.visible(accepts)
		m.did("forget %+v", q)
		forget := func() int { return s.Forget(q) }
		if q == (signals.Query{}) {
			forget = func() int { return s.Forget(signals.Query{Pattern: "*"}) }
		}
		if got := forget(); got != len(gone) {
			m.fatalf("got %d forgotten, want %d", got, len(gone))
		}
		for _, f := range m.facts {
			if accepts(f) {
				m.leave(f)
			}
		}
	case n < 82:
		m.capacity, m.maxAge = m.capacities(), m.ages()
		m.did("resize %d %v", m.capacity, m.maxAge)
		s.Resize(m.capacity, m.maxAge)
		m.evict()
	case n < 84:
		m.restore()
	case n < 87:
		m.finishOp()
	case n < 90:
		o := &sinkModelMonitor{pattern: pick(m, []string{"x", "x*", "y, z:*", "u.*", "?"}), span: pick(m, modelSpans)}
		if len(m.monitors) == 5 {
			m.did("stop a monitor of %s", m.monitors[0].pattern)
			m.monitors[0].Stop()
			if _, ok := m.monitors[0].Last(); ok || m.monitors[0].Count() != 0 {
				m.fatalf("a stopped monitor counts %d", m.monitors[0].Count())
			}
			m.monitors = m.monitors[1:]
		}
		m.did("monitor %s over %v", o.pattern, o.span)
		o.Monitor = s.Monitor(o.pattern, o.span)
		o.seen = m.visible(func(f *sinkFact) bool { return signals.Match(o.pattern, f.name) })
		if n := len(o.seen); n > 0 {
			o.last = o.seen[n-1]
		}
		m.monitors = append(m.monitors, o)
	default:
		d := pick(m, []time.Duration{1, 500 * time.Microsecond, time.Millisecond, 7 * time.Millisecond, 50 * time.Millisecond, time.Second})
		m.did("sleep %v", d)
		time.Sleep(d)
	}
}

func (m *sinkModel) someOp() *sinkModelOp {
	if len(m.ops) < 3 {
		finish := make(chan struct{})
		if _, err := m.owner.TryEnqueue(context.Background(), finish); err != nil {
			m.fatalf("enqueue: %v", err)
		}
		m.ops = append(m.ops, &sinkModelOp{<-m.started, func() { close(finish) }})
	}
	return pick(m, m.ops)
}

// finishOp ends an operation and removes it from the window.
func (m *sinkModel) finishOp() {
	if len(m.ops) == 0 {
		return
	}
	o := pick(m, m.ops)
	m.did("operation %d ends", o.ID())
	o.finish()
	if err := m.owner.Wait(m.t.Context(), o.ID()); err != nil {
		m.fatalf("wait: %v", err)
	}
	if !m.owner.Evict(o.ID()) {
		m.fatalf("operation %d was not evicted", o.ID())
	}
	synctest.Wait() // handlers are told
	for _, f := range m.facts {
		if f.op == o && !f.restored {
			if f.held {
				m.releases(f)
			}
			m.leave(f)
		}
	}
	m.ops = slices.DeleteFunc(m.ops, func(have *sinkModelOp) bool { return have == o })
}

// releases is a release of a held fact that may have ended by itself.
func (m *sinkModel) releases(f *sinkFact) {
	if f.visible() {
		m.uncount(f)
	}
	m.leave(f)
}

func (m *sinkModel) operationRetracts() {
	o := m.someOp()
	own := func(pattern string) (found []*sinkFact) {
		for _, f := range m.facts {
			if f.op == o && (f.own || f.dropped && f.visible()) && !f.held && !f.restored && signals.Match(pattern, f.name) {
				found = append(found, f)
			}
		}
		return found
	}
	retracted := func(f *sinkFact) {
		if f.visible() { // else the sink's monitors go on counting it
			m.uncount(f)
		} else {
			m.taken++
		}
		m.leave(f)
		f.own = false
	}
	if m.rand.IntN(2) == 0 {
		name := pick(m, modelNames)
		gone := own(name)
		m.did("operation %d retracts %s", o.ID(), name)
		if got := o.Retract(name); got != (len(gone) > 0) {
			m.fatalf("retracted %v, want one of %d", got, len(gone))
		}
		if len(gone) > 0 {
			retracted(gone[len(gone)-1])
		}
		return
	}
	pattern := pick(m, modelPatterns)
	gone := own(pattern)
	m.did("operation %d retracts matching %s", o.ID(), pattern)
	if got := o.RetractMatching(pattern); got != len(gone) {
		m.fatalf("retracted %d, want %d", got, len(gone))
	}
	for _, f := range gone {
		retracted(f)
	}
}

// restore puts back a saved signal, which may be old.
func (m *sinkModel) restore() {
	old := pick(m, m.facts)
	signal := signals.Signal{Name: old.name, Key: old.key, Time: old.at}
	if old.op != nil {
		signal.Operation, signal.Source = old.op.ID(), "owner"
	}
	at := old.at
	stored := m.maxAge == 0 || time.Since(at) < m.maxAge
	m.did("restore %s of %v ago", signal.Name, time.Since(at))
	if got := m.sink.Restore(slices.Values([]signals.Signal{signal})); got != map[bool]int{true: 1}[stored] {
		m.fatalf("restored %d, want %v", got, stored)
	}
	if !stored {
		return
	}
	// Its time is not before that of the newest place.
	if newest := m.facts[len(m.facts)-1]; at.Before(newest.at) && !newest.aged {
		at = newest.at
	}
	m.add(&sinkFact{name: old.name, key: old.key, op: old.op, at: at, restored: true, seq: m.seq()})
}

func (m *sinkModel) accepts(q signals.Query, f *sinkFact) bool {
	if q.Operation != 0 && (f.op == nil || f.op.ID() != q.Operation) {
		return false
	}
	return (q.Pattern == "" || signals.Match(q.Pattern, f.name)) &&
		(q.Key == "" || q.Key == f.key) &&
		(q.Source == "" || q.Source == "owner" && f.op != nil) &&
		(q.Within <= 0 || time.Since(f.at) <= q.Within) &&
		f.seq > q.AfterSeq && (!q.Held || f.held)
}

func (m *sinkModel) query() signals.Query {
	q := signals.Query{Pattern: pick(m, modelPatterns), Key: pick(m, modelKeys)}
	switch m.rand.IntN(4) {
	case 0:
		q.Within = pick(m, modelSpans)
	case 1:
		q.AfterSeq = m.rand.Uint64N(m.next + 1)
	case 2:
		q.Operation = m.someOp().ID()
	case 3:
		q.Source = pick(m, []string{"owner", "other", ""})
	}
	return q
}

// ask compares one thing.
func (m *sinkModel) ask() {
	s := m.sink
	if m.heard != m.want {
		m.fatalf("a handler heard %d signals, want %d", m.heard, m.want)
	}
	if told := m.told.Load(); told != int64(m.taken) {
		m.fatalf("a handler got %d retractions, want %d", told, m.taken)
	}
	switch m.rand.IntN(8) {
	case 0, 1:
		pattern := pick(m, modelPatterns)
		want := len(m.visible(func(f *sinkFact) bool { return signals.Match(pattern, f.name) }))
		if got := s.Count(pattern); got != want || s.Has(pattern) != (want > 0) {
			m.fatalf("%q: got Count %d, Has %v, want %d", pattern, got, s.Has(pattern), want)
		}
	case 2:
		m.compareSense(m.query())
	case 3:
		if m.rand.IntN(5) == 0 {
			m.compare()
		}
	case 4:
		now := time.Now()
		for _, o := range m.monitors {
			var counted []*sinkFact
			for _, f := range o.seen {
				if o.span == 0 || now.Sub(f.at) <= o.span {
					counted = append(counted, f)
				}
			}
			if got := o.Count(); got != len(counted) {
				m.fatalf("monitor of %q over %v: got %d, want %d", o.pattern, o.span, got, len(counted))
			}
			if last, ok := o.Last(); ok != (o.last != nil && len(counted) > 0) || ok && last.Seq != o.last.seq {
				m.fatalf("monitor of %q over %v: the last is %v, %v, want %v", o.pattern, o.span, last, ok, o.last)
			}
			if n := len(counted); n > 0 && o.span > 0 {
				k := m.rand.IntN(n) + 1
				want := counted[n-k].at.Add(o.span).Sub(now) + 1 // as old as the span it still counts
				if got := o.Below(k); got != want {
					m.fatalf("monitor of %q over %v, %d counted: Below(%d): got %v, want %v", o.pattern, o.span, n, k, got, want)
				}
			}
		}
	case 5:
		want := m.gateShut()
		_, err := m.gated.TryEnqueue(context.Background(), 0)
		if _, refused := err.(*core.RefusedError); refused != want {
			m.fatalf("gate: got %v, want shut %v", err, want)
		}
	}
}

// gateShut says whether a fact is there that the gate reacts to.
func (m *sinkModel) gateShut() bool {
	return len(m.visible(func(f *sinkFact) bool { return signals.Match(modelGate, f.name) })) > 0
}

func (m *sinkModel) compareSense(q signals.Query) {
	m.t.Helper()
	want := m.visible(func(f *sinkFact) bool { return m.accepts(q, f) })
	i := 0
	for got := range m.sink.Sense(q) {
		if i == len(want) {
			m.fatalf("%+v: got %v besides %d others", q, got, len(want))
		}
		f := want[i]
		id := core.OperationID(0)
		if f.op != nil {
			id = f.op.ID()
		}
		if got.Name != f.name || got.Key != f.key || got.Seq != f.seq || got.Held != f.held ||
			got.Operation != id || !got.Time.Equal(f.at) {
			m.fatalf("%+v: got %v, want %+v of %v", q, got, f, id)
		}
		i++
	}
	if i != len(want) {
		m.fatalf("%+v: got %d signals, want %d", q, i, len(want))
	}
}

// law checks the equation in the comment of SinkStats.
func (m *sinkModel) law() {
	m.t.Helper()
	want := len(m.visible(func(*sinkFact) bool { return true }))
	stats := m.sink.Stats()
	if left := int(stats.Raised-stats.Evicted-stats.Expired) + m.others; left != want {
		m.fatalf("%d signals are left, but by %v and %d others it is %d", want, stats, m.others, left)
	}
}

// compare compares everything that is there.
func (m *sinkModel) compare() {
	m.t.Helper()
	m.compareSense(signals.Query{})
	held, stored, kept := 0, 0, 0
	for _, f := range m.visible(func(*sinkFact) bool { return true }) {
		switch {
		case f.held:
			held++
		case f.kept:
			kept++
		default:
			stored++
		}
	}
	got := m.sink.Stats()
	if got.Held != held || got.Stored != stored || got.Kept != kept || got.Stored > got.Capacity || got.Capacity != m.capacity || got.MaxAge != m.maxAge {
		m.fatalf("got %+v, want %d held, %d stored, %d kept, capacity %d, age %v", got, held, stored, kept, m.capacity, m.maxAge)
	}
	for _, o := range m.ops {
		var want []string
		for _, f := range m.facts {
			if f.op == o && f.own && !(f.held && !f.visible()) {
				want = append(want, f.name)
			}
		}
		var names []string
		for _, sig := range o.Signals() {
			names = append(names, sig.Name)
		}
		if !slices.Equal(names, want) {
			m.fatalf("operation %d: got %q, want %q", o.ID(), names, want)
		}
	}
}
