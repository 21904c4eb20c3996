package batching

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
)

// model is a builder without any cleverness: lists, gone through from the beginning
// whenever something is asked. It is what builder is tested against.
type model struct {
	b        *builder[int] // for its options and its margin only
	items    []*modelItem  // all that ever were, by value
	lots     []*modelLot   // all that ever were, in the order in which they were opened
	queue    []*modelItem  // that wait for room
	sealed   []*modelLot   // in the order in which they were
	closed   bool
	batches  map[Reason]uint64
	rejected uint64
}

type modelItem struct {
	value      int
	key        string
	size       int
	called     bool
	at, latest time.Duration
	deadline   time.Duration
	state      string // "", waiting, pending, running, succeeded, failed, cancelled, dropped, rejected
	lot        *modelLot
	unwanted   bool
}

type modelLot struct {
	number  int
	key     string
	state   string // open, sealed, running, gone
	items   []*modelItem
	pressed time.Duration
	reason  Reason
}

func (m *model) in(state string) (items []*modelItem) {
	for _, l := range m.lots {
		for _, i := range l.items {
			if i.state == state {
				items = append(items, i)
			}
		}
	}
	slices.SortFunc(items, func(a, b *modelItem) int { return a.value - b.value })
	return items
}

// pending are the pending items in the order in which they were accepted. Items wait
// for room in the order in which they come, so that is the order of their values.
func (m *model) pending() []*modelItem { return m.in("pending") }

func (m *model) bytes() (n int) {
	for _, i := range m.pending() {
		n += i.size
	}
	return n
}

func (m *model) fits(i *modelItem) bool {
	return len(m.pending()) < m.b.maxQueued && (m.b.maxQueuedBytes == never2 || m.bytes()+i.size <= m.b.maxQueuedBytes)
}

const never2 = int(never)

func (m *model) open(key string) *modelLot {
	for _, l := range m.lots {
		if l.key == key && l.state == "open" {
			return l
		}
	}
	return nil
}

func (m *model) flying(key string) (n int) {
	for _, l := range m.lots {
		if l.key == key && (l.state == "sealed" || l.state == "running") {
			n++
		}
	}
	return n
}

// slots is how many slots the lots on their way use or could use.
func (m *model) slots() (n int) {
	keys := map[string]bool{}
	for _, l := range m.lots {
		keys[l.key] = true
	}
	for key := range keys {
		n += min(m.flying(key), m.b.perKey)
	}
	return n
}

func (m *model) seal(l *modelLot, r Reason) {
	l.state, l.reason = "sealed", r
	m.sealed = append(m.sealed, l)
}

func (m *model) admit(i *modelItem, now time.Duration) {
	l := m.open(i.key)
	size := func() (n int) {
		for _, i := range l.items {
			n += i.size
		}
		return n
	}
	if l != nil && m.b.maxBytes != never2 && size()+i.size > m.b.maxBytes {
		m.seal(l, ReasonBytes)
		l = nil
	}
	if l == nil {
		l = &modelLot{number: len(m.lots), key: i.key, state: "open", pressed: never}
		m.lots = append(m.lots, l)
	}
	i.state, i.lot, i.at, i.latest = "pending", l, now, m.b.margin.latest(now, i.deadline)
	l.items = append(l.items, i)
	switch {
	case len(l.items) == m.b.maxSize:
		m.seal(l, ReasonSize)
	case size() >= m.b.maxBytes:
		m.seal(l, ReasonBytes)
	}
}

func (m *model) when(l *modelLot) (time.Duration, Reason) {
	at, reason := later(l.items[0].at, m.b.delay), ReasonDelay
	for _, i := range l.items {
		if i.latest < at {
			at, reason = i.latest, ReasonDeadline
		}
	}
	if l.pressed < at {
		at, reason = l.pressed, ReasonRoom
	}
	return at, reason
}

// first is the open lot that is to be flushed next of those that could be.
func (m *model) first() (first *modelLot, due time.Duration) {
	due = never
	if m.slots() >= m.b.limit {
		return nil, due
	}
	for _, l := range m.lots {
		if l.state == "open" && m.flying(l.key) < m.b.perKey {
			if at, _ := m.when(l); at < due {
				first, due = l, at
			}
		}
	}
	return first, due
}

func (m *model) step(now time.Duration) {
	for l, due := m.first(); l != nil && due <= now; l, due = m.first() {
		_, reason := m.when(l)
		m.seal(l, reason)
	}
}

func (m *model) press(now time.Duration) {
	if l := m.pending()[0].lot; l.state == "open" && l.pressed == never {
		l.pressed = now
	}
	m.step(now)
}

func (m *model) offer(i *modelItem, now time.Duration) error {
	switch {
	case m.closed:
		return core.ErrClosed
	case (len(m.queue) > 0 || !m.fits(i)) && !m.b.dropOldest:
		m.press(now)
		return core.ErrFull
	}
	for !m.fits(i) {
		m.withdraw(m.pending()[0], "dropped")
	}
	m.admit(i, now)
	m.step(now)
	return nil
}

func (m *model) withdraw(i *modelItem, state string) {
	i.state = state
	l := i.lot
	l.items = slices.DeleteFunc(l.items, func(other *modelItem) bool { return other == i })
	m.items = append(m.items, i)
	if len(l.items) == 0 {
		l.state = "gone"
	}
}

func (m *model) refill(now time.Duration) {
	for len(m.queue) > 0 {
		i := m.queue[0]
		if !m.fits(i) {
			m.press(now)
			return
		}
		m.queue = m.queue[1:]
		m.admit(i, now)
	}
	m.step(now)
}

// startable is the sealed lot that a coordinator would start next.
func (m *model) startable() *modelLot {
	running := map[string]int{}
	all := 0
	for _, l := range m.lots {
		if l.state == "running" {
			running[l.key]++
			all++
		}
	}
	for _, l := range m.sealed {
		if l.state == "sealed" && all < m.b.limit && running[l.key] < m.b.perKey {
			return l
		}
	}
	return nil
}

func (m *model) stats() Stats {
	s := Stats{Closed: m.closed, Rejected: m.rejected, PendingBytes: m.bytes(), Pending: len(m.pending())}
	count := func(i *modelItem) {
		s.Enqueued++
		switch i.state {
		case "running":
			s.Running++
		case "succeeded":
			s.Succeeded++
		case "failed":
			s.Failed++
		case "cancelled":
			s.Cancelled++
		case "dropped":
			s.Dropped++
		}
	}
	for _, i := range m.items {
		count(i)
	}
	for _, l := range m.lots {
		for _, i := range l.items {
			count(i)
		}
	}
	for r, n := range m.batches {
		for range n {
			s.count(r)
		}
	}
	return s
}

// pair runs a builder and a model side by side.
type pair struct {
	t       *testing.T
	b       *builder[int]
	m       *model
	now     time.Duration
	entries []*entry[int]
	twins   []*modelItem
	byLot   map[*modelLot]*lot[int]
	sealed  int // how many have been compared
	trace   []string
}

func (p *pair) check(what string) {
	p.t.Helper()
	p.trace = append(p.trace, fmt.Sprintf("%v %s", p.now, what))
	fail := func(format string, args ...any) {
		p.t.Helper()
		p.t.Fatalf("%s\noptions %+v\nafter %q", fmt.Sprintf(format, args...), *p.b, p.trace[max(0, len(p.trace)-30):])
	}
	for _, l := range p.b.sealed {
		if p.sealed == len(p.m.sealed) {
			fail("sealed one more lot than the model")
		}
		p.byLot[p.m.sealed[p.sealed]] = l
		p.sealed++
	}
	p.b.sealed = nil
	if p.sealed != len(p.m.sealed) {
		fail("the model sealed %d lots more", len(p.m.sealed)-p.sealed)
	}
	want, got := p.m.stats(), p.b.counters()
	got.Margin = 0
	if want != got {
		fail("counters: got %+v, want %+v", got, want)
	}
	if got.Enqueued != uint64(got.Pending+got.Running)+got.Succeeded+got.Failed+got.Cancelled+got.Dropped {
		fail("the books do not balance: %+v", got)
	}
	if p.b.waiting.n != len(p.m.queue) {
		fail("%d wait for room, want %d", p.b.waiting.n, len(p.m.queue))
	}
	if p.b.claims != p.m.slots() {
		fail("%d slots claimed, want %d", p.b.claims, p.m.slots())
	}
	for ml, l := range p.byLot {
		if ml.state == "gone" {
			if l.state != lotGone {
				fail("lot %d is not gone", ml.number)
			}
			delete(p.byLot, ml)
			continue
		}
		var values, wanted []int
		for _, e := range l.entries {
			if e != nil {
				values = append(values, e.value)
			}
		}
		for _, i := range ml.items {
			wanted = append(wanted, i.value)
		}
		if !slices.Equal(values, wanted) || l.reason != ml.reason {
			fail("lot %d has %v because of %q, want %v because of %q", ml.number, values, l.reason, wanted, ml.reason)
		}
		if l.n > p.b.maxSize || l.bytes > p.b.maxBytes {
			fail("lot %d has %d items and %d bytes", ml.number, l.n, l.bytes)
		}
	}
	for _, l := range p.b.agenda {
		if len(l.entries) > 2*l.n+16 {
			fail("a lot of %d items has a list of %d", l.n, len(l.entries))
		}
	}
	_, due := p.m.first()
	if at := p.b.next(); at > due || at <= p.now {
		fail("next is %v at %v, want it in the future and not after %v", at, p.now, due)
	}
	if !p.b.keyed && len(p.b.agenda) > 1 || len(p.b.groups) > len(p.m.lots) {
		fail("it has %d lots open, %d groups", len(p.b.agenda), len(p.b.groups))
	}
	p.b.admitted, p.b.dropped, p.b.emptied = nil, nil, nil
}

func (p *pair) random(r *rand.Rand, ending bool) {
	switch n := r.IntN(100); {
	case n < 40:
		p.offer(r)
	case n < 50 && len(p.entries) > 0: // one of the last
		i := len(p.entries) - 1 - r.IntN(min(len(p.entries), 20))
		p.leave(i)
	case n < 65:
		if ml := p.m.startable(); ml != nil {
			ok := p.b.start(p.byLot[ml], p.now)
			require.True(p.t, ok)
			ml.state = "running"
			p.m.batches[ml.reason]++
			for _, i := range ml.items {
				i.state = "running"
			}
			p.m.refill(p.now)
			p.check("start")
		}
	case n < 80:
		for _, ml := range p.m.lots {
			if ml.state == "running" && r.IntN(2) == 0 {
				p.end(ml, r)
				break
			}
		}
	case n < 95:
		p.now += time.Duration(r.IntN(40))
		p.b.step(p.now)
		p.m.step(p.now)
		p.check("step")
	case n < 96:
		p.b.flush()
		for _, i := range p.m.pending() {
			if i.lot.state == "open" {
				p.m.seal(i.lot, ReasonFlush)
			}
		}
		p.check("flush")
	case n < 98:
		for _, ml := range p.m.lots {
			if ml.state == "sealed" && r.IntN(2) == 0 {
				p.b.cancel(p.byLot[ml], p.now)
				for len(ml.items) > 0 {
					p.m.withdraw(ml.items[0], "cancelled")
				}
				p.m.refill(p.now)
				p.check("cancel")
				break
			}
		}
	case ending:
		turned := p.b.complete()
		require.Len(p.t, turned, len(p.m.queue))
		p.m.rejected += uint64(len(p.m.queue))
		p.m.closed, p.m.queue = true, nil
		p.check("complete")
	}
}

func (p *pair) offer(r *rand.Rand) {
	e := &entry[int]{value: len(p.entries), called: r.IntN(2) == 0, size: 1 + r.IntN(6), latest: never}
	if p.b.keyed {
		e.key = string(rune('a' + r.IntN(4)))
	}
	if e.called && r.IntN(2) == 0 {
		e.latest = p.now + time.Duration(r.IntN(60)-5)
	}
	i := &modelItem{value: e.value, key: e.key, size: e.size, called: e.called, deadline: e.latest}
	p.entries, p.twins = append(p.entries, e), append(p.twins, i)
	err := p.b.accept(e, p.now)
	require.Equal(p.t, p.m.offer(i, p.now), err)
	p.check(fmt.Sprintf("offer %d: %v", e.value, err))
	if err == core.ErrFull && r.IntN(2) == 0 {
		p.b.wait(e)
		p.m.queue = append(p.m.queue, i)
		i.state = "waiting"
	} else if err != nil {
		e.stage = stageDone
	}
}

func (p *pair) leave(n int) {
	e, i := p.entries[n], p.twins[n]
	if !e.called || e.stage == stageDone {
		return
	}
	abandoned := p.b.leave(e, p.now)
	want := false
	switch i.state {
	case "waiting":
		p.m.queue = slices.DeleteFunc(p.m.queue, func(other *modelItem) bool { return other == i })
		i.state = "rejected"
		p.m.refill(p.now)
	case "pending":
		p.m.withdraw(i, "cancelled")
		p.m.refill(p.now)
	case "running":
		i.unwanted = true
		want = !slices.ContainsFunc(i.lot.items, func(i *modelItem) bool { return i.state == "running" && !i.unwanted })
	}
	require.Equal(p.t, want, abandoned, "abandoned")
	p.check(fmt.Sprintf("leave %d", n))
}

// end settles some or all items of a running lot, and in the latter case ends it.
func (p *pair) end(ml *modelLot, r *rand.Rand) {
	all := r.IntN(3) > 0
	for _, i := range ml.items {
		if i.state != "running" || !all && r.IntN(2) == 0 {
			continue
		}
		i.state = "succeeded"
		counter := &p.b.stats.Succeeded
		if r.IntN(4) == 0 {
			i.state, counter = "failed", &p.b.stats.Failed
		}
		p.b.settle(p.entries[i.value], counter)
	}
	if all {
		p.b.end(p.byLot[ml], p.now)
		ml.state = "gone"
		p.m.step(p.now)
		p.m.items = append(p.m.items, ml.items...)
		ml.items = nil
		p.m.lots = slices.DeleteFunc(p.m.lots, func(l *modelLot) bool { return l.state == "gone" })
	}
	p.check("end")
}

func TestBuilderAgainstModel(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	const steps = 500
	for round := range rounds {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		pick := func(values ...int) int { return values[r.IntN(len(values))] }
		b := &builder[int]{
			maxSize:        pick(1, 2, 3, 8),
			maxBytes:       pick(never2, never2, 6, 15),
			maxQueued:      pick(1, 2, 5, 20),
			maxQueuedBytes: pick(never2, never2, 15, 40),
			delay:          time.Duration(pick(never2, 10, 30, 100)),
			limit:          pick(1, 1, 2, 4),
			keyed:          r.IntN(2) == 0,
			dropOldest:     r.IntN(4) == 0,
			margin:         margin{fixed: time.Duration(pick(-1, 10, 10, 0))},
		}
		b.perKey = b.limit
		if b.keyed {
			b.perKey = 1
		}
		p := &pair{t: t, b: b, m: &model{b: b, batches: map[Reason]uint64{}}, byLot: map[*modelLot]*lot[int]{}}
		for n := range steps {
			p.random(r, n > steps*9/10)
		}
		p.finish()
	}
}

// finish flushes and ends everything, after which nothing is left.
func (p *pair) finish() {
	r := rand.New(rand.NewPCG(2, 2))
	p.b.complete()
	p.m.closed, p.m.queue = true, nil
	if r.IntN(2) == 0 {
		lost := p.b.close()
		require.Len(p.t, lost, len(p.m.pending()))
		for _, i := range p.m.pending() {
			p.m.withdraw(i, "cancelled")
		}
	}
	p.b.flush()
	p.b.sealed = nil
	for _, e := range p.entries {
		if l := e.lot; l != nil && l.state == lotSealed {
			require.True(p.t, p.b.start(l, p.now))
		}
	}
	for _, e := range p.entries {
		if e.stage == stageRunning {
			p.b.settle(e, &p.b.stats.Succeeded)
		}
	}
	for _, e := range p.entries {
		if l := e.lot; l != nil && l.state == lotRunning {
			p.b.end(l, p.now)
		}
	}
	s := p.b.counters()
	require.Zero(p.t, s.Pending+s.Running+s.PendingBytes)
	require.Equal(p.t, s.Enqueued, s.Succeeded+s.Failed+s.Cancelled+s.Dropped)
	require.Empty(p.t, p.b.agenda)
	require.Empty(p.t, p.b.groups)
	require.Zero(p.t, p.b.claims)
	require.Equal(p.t, never, p.b.next())
}
