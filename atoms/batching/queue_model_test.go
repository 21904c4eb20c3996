package batching

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
)

type (
	testQueue = queue[int, struct{}]
	testBatch = batch[int, struct{}]
	testItem  = item[int, struct{}]
)

// model computes the results of items, without batches. After each step, a queue is
// compared with it, and the batches are checked for rules that always hold.
type model struct {
	*testing.T
	*rand.Rand
	q         *testQueue
	all       []*testItem
	pending   []*testItem
	waiting   []*testItem
	settled   map[*testItem]bool
	stats     Counters
	dropping  bool
	submitted []*testBatch
	sent      map[*testBatch]bool // the same
	left      map[*testItem]bool  // items whose callers have left during the flush
	wanted    map[*testBatch]int  // for each batch that is being flushed, the number of items whose callers have not left
	lost      []int               // expected effects of the step
	unwanted  []*testBatch
	flood     bool
	trace     []string
}

var errLeft = errors.New("left")

// TestQueueAgainstModel makes the same random calls to a queue and to its model.
func TestQueueAgainstModel(t *testing.T) {
	rounds := 10
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds = 60
	}
	for round := range rounds {
		m := &model{
			T: t, Rand: rand.New(rand.NewPCG(1, uint64(round))),
			settled: map[*testItem]bool{}, left: map[*testItem]bool{}, sent: map[*testBatch]bool{}, wanted: map[*testBatch]int{},
		}
		pick := func(values ...int) int { return values[m.IntN(len(values))] }
		m.q = &testQueue{
			opts: &Options[int]{
				MaxSize:        pick(1, 2, 3, 8, 60),
				MaxBytes:       pick(math.MaxInt, math.MaxInt, 6, 15),
				MaxQueued:      pick(1, 2, 5, 20, 60),
				MaxQueuedBytes: pick(math.MaxInt, math.MaxInt, 15, 40),
				DropOldest:     m.IntN(4) == 0,
			},
			begin:  func(*testBatch) {},
			submit: m.submit,
			open:   map[string]*testBatch{},
		}
		keys := pick(1, 4)
		for range 400 {
			m.step(keys)
		}
		m.do("complete", m.q.complete, func() {
			for _, it := range m.waiting {
				m.settle(it, &m.stats.Rejected)
			}
			m.waiting, m.stats.Closed = nil, true
		})
		m.do("flush", m.q.flush, func() {})
		for len(m.pending)+m.stats.Running > 0 {
			for _, b := range m.submitted {
				m.flush(b)
			}
		}
		require.Empty(t, m.q.open)
	}
}

func (m *model) submit(b *testBatch) {
	require.False(m, m.sent[b], "submitted twice")
	m.submitted, m.sent[b] = append(m.submitted, b), true
}

func (m *model) step(keys int) {
	var last *testItem // one of the last items
	if len(m.all) > 0 {
		last = m.all[len(m.all)-1-m.IntN(min(len(m.all), 20))]
	}
	var sent *testBatch
	if len(m.submitted) > 0 {
		sent = m.submitted[len(m.submitted)-1-m.IntN(min(len(m.submitted), 10))]
	}
	switch n := m.IntN(100); {
	case n < 45 || last == nil:
		m.offer(fmt.Sprint(m.IntN(keys)))
	case n < 65:
		if last.state == stateWaiting || last.done != nil && !m.settled[last] && !m.left[last] {
			m.do(fmt.Sprint("leave ", last.in), func() { m.q.leave(last, errLeft) }, func() { m.leave(last) })
		}
	case n < 80 && sent != nil:
		m.flush(sent)
	case n < 90:
		if last.state == statePending {
			m.do("time", func() { m.q.enqueue(last.batch, reasonDelay) }, func() {})
			require.True(m, m.sent[last.batch])
		}
	case n < 93:
		m.do("flush", m.q.flush, func() {})
		for _, it := range m.pending {
			require.True(m, m.sent[it.batch])
		}
	case n < 97 && sent != nil:
		items := m.pendingOf(sent)
		m.do("cancel", func() { m.q.cancel(sent, errLeft) }, func() { m.cancel(items) })
	case n == 99:
		m.do("cancel all", func() { m.q.cancelAll(errLeft) }, func() { m.cancel(m.pending) })
	}
}

func (m *model) pendingOf(b *testBatch) (items []*testItem) {
	for _, it := range m.pending {
		if it.batch == b {
			items = append(items, it)
		}
	}
	return items
}

func bytesOf(items []*testItem) (n int) {
	for _, it := range items {
		n += it.size
	}
	return n
}

func (m *model) fits(it testItem) bool {
	return len(m.pending) < m.q.opts.MaxQueued && bytesOf(m.pending)+it.size <= m.q.opts.MaxQueuedBytes
}

func (m *model) offer(key string) {
	it := testItem{in: len(m.all), size: 1 + m.IntN(6), key: key}
	if m.IntN(2) == 0 {
		it.done = make(chan struct{})
	}
	if m.IntN(2) == 0 {
		it.room = make(chan struct{})
	}
	var accepted *testItem
	var got, want error
	m.do(fmt.Sprint("accept ", it.in), func() {
		if accepted, got = m.q.accept(&it); got != nil {
			accepted = &it
		}
		m.all = append(m.all, accepted)
	}, func() {
		drops := m.q.opts.DropOldest && !m.fits(it)
		for drops && !m.fits(it) {
			m.withdraw(m.pending[0], &m.stats.Dropped)
		}
		switch {
		case len(m.waiting) == 0 && m.fits(it):
			m.flood, m.dropping = drops && !m.dropping, drops
			m.admit(accepted)
		case it.room != nil:
			m.waiting = append(m.waiting, accepted)
		default:
			want = core.ErrFull
		}
	})
	require.Equal(m, want, got)
}

func (m *model) admit(it *testItem) {
	m.pending = append(m.pending, it)
	m.stats.Enqueued++
}

func without(items []*testItem, it *testItem) []*testItem {
	return slices.DeleteFunc(slices.Clone(items), func(other *testItem) bool { return other == it })
}

func (m *model) settle(it *testItem, counter *uint64) {
	m.settled[it] = true
	*counter++
}

func (m *model) withdraw(it *testItem, counter *uint64) {
	m.pending = without(m.pending, it)
	m.settle(it, counter)
	if it.done == nil {
		m.lost = append(m.lost, it.in)
	}
	if len(m.pendingOf(it.batch)) == 0 && m.sent[it.batch] {
		m.unwanted = append(m.unwanted, it.batch)
	}
}

func (m *model) cancel(items []*testItem) {
	for _, it := range items {
		m.withdraw(it, &m.stats.Cancelled)
	}
	m.refill()
}

func (m *model) leave(it *testItem) {
	switch {
	case slices.Contains(m.waiting, it):
		m.waiting = without(m.waiting, it)
		m.settle(it, &m.stats.Rejected)
	case slices.Contains(m.pending, it):
		m.withdraw(it, &m.stats.Cancelled)
	default:
		m.left[it] = true
		if m.wanted[it.batch]--; m.wanted[it.batch] == 0 {
			m.unwanted = append(m.unwanted, it.batch)
		}
	}
	m.refill()
}

func (m *model) refill() {
	for len(m.waiting) > 0 && m.fits(*m.waiting[0]) {
		m.admit(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

// flush flushes a submitted batch.
func (m *model) flush(b *testBatch) {
	var got []*testItem
	want := m.pendingOf(b)
	m.do("start", func() { got = m.q.start(b) }, func() {
		for _, it := range want {
			m.pending = without(m.pending, it)
		}
		m.stats.Running += len(want)
		if len(want) > 0 {
			m.stats.Batches++
			m.wanted[b] = len(want)
		}
		m.refill()
	})
	m.same("flushed", true, slices.Equal(want, got))
	for _, it := range m.all {
		if it.batch != b || m.settled[it] || m.IntN(2) == 0 {
			continue
		}
		m.stats.Running--
		m.q.stats.Running--
		m.do("succeed", func() { m.q.finish(it, nil, &m.q.stats.Succeeded) }, func() { m.settle(it, &m.stats.Succeeded) })
	}
}

// do changes the queue and the model, and compares them.
func (m *model) do(what string, change, twin func()) {
	m.Helper()
	m.trace = append(m.trace, what)
	change()
	twin()
	m.stats.Pending, m.stats.PendingBytes = len(m.pending), bytesOf(m.pending)
	m.same("counters", m.stats, m.q.counters())
	m.same("pending", true, slices.Equal(m.pending, listed(&m.q.pending)))
	m.same("waiting", true, slices.Equal(m.waiting, listed(&m.q.waiting)))
	m.same("lost", m.lost, m.q.effects.lost)
	m.same("unwanted", m.unwanted, m.q.effects.unwanted)
	m.same("flood", m.flood, m.q.effects.flood)
	m.lost, m.unwanted, m.flood, m.q.effects = nil, nil, false, effects[int, struct{}]{}
	for _, it := range m.all {
		over := m.settled[it]
		want := [3]bool{over, over && it.done != nil && it.batch != nil, it.room != nil && (over || it.batch != nil)}
		if got := [3]bool{it.state == stateSettled, closed(it.done), closed(it.room)}; want != got {
			m.same(fmt.Sprintf("item %d: settled, has a result, has room", it.in), want, got)
		}
	}
	m.checkBatches()
}

// checkBatches checks the rules for batches that wait to be flushed.
func (m *model) checkBatches() {
	in := map[*testBatch][]*testItem{}
	newest := map[string]*testBatch{}
	for _, it := range m.pending {
		b := it.batch
		m.same("one key in a batch", b.key, it.key)
		m.same("batches in order", in[b] == nil, newest[it.key] != b)
		in[b], newest[it.key] = append(in[b], it), b
	}
	for b, items := range in {
		m.same("counts of a batch", [2]int{len(items), bytesOf(items)}, [2]int{b.n, b.bytes})
		m.same("submitted, or open", true, m.sent[b] || m.q.open[b.key] == b)
		m.same("within the limits", true, b.n <= m.q.opts.MaxSize && b.bytes <= m.q.opts.MaxBytes)
		m.same("memory of callers that have left is given back", true, len(b.items) <= 2*b.n+16)
	}
	for key, b := range m.q.open {
		m.same("open", true, key == b.key && b.n > 0 && b.n < m.q.opts.MaxSize && b.bytes < m.q.opts.MaxBytes)
	}
	m.same("a full queue makes room", true, len(m.waiting) == 0 || m.sent[m.pending[0].batch])
}

func (m *model) same(what string, want, got any) {
	if !reflect.DeepEqual(want, got) {
		m.Helper()
		m.Fatalf("%s: got %v, want %v, after %q", what, got, want, m.trace[max(0, len(m.trace)-30):])
	}
}

func listed(l *list[int, struct{}]) (items []*testItem) {
	for it := l.head; it != nil; it = it.next {
		items = append(items, it)
	}
	return items
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
