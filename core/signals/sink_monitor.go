package signals

import (
	"slices"
	"sort"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
)

// A Monitor counts the signals that match a pattern, as they arrive, over a sliding span
// of time. Use it for decisions: its count does not depend on how many other signals
// there are, and reading it does not search the sink.
//
// The count goes down when a signal becomes older than the span, and when a signal is
// retracted while it is present. The count does not change when newer signals push one out
// of the sink, or when a lease ends. A signal exactly as old as the span counts. With a
// span of 0 or less, signals count until they are retracted. To follow a held signal, use
// [Sink.Has] or Gates of a coordinator instead. Counts are exact up to [MonitorCap] signals within
// the span; beyond that, only the newest MonitorCap signals count.
//
// A Monitor costs a few nanoseconds for each matching signal. With a span, it takes up to
// 32 bytes for each signal that counts. Reading the count takes a lock. The sink keeps a
// Monitor until Stop. All methods are safe for concurrent use.
type Monitor struct {
	names   *names
	pattern glob.Pattern
	span    int64

	// Guarded by names.mu.
	stamps  fifo.Queue[stamp] // signals within the span, oldest first; not used without a span
	total   int               // without a span
	from    uint64            // without a span: signals from this Seq on are counted
	number  uint64            // among the monitors of names
	made    uint64            // next Seq when the monitor was made: signals restored later do not count
	last    seqFact           // newest signal seen
	stopped bool
	marks   lists.List[*hook.Watermark]
	ageing  clock.Alarm // rings when the count may have fallen to low
}

// Up to MonitorCap signals within its span, the count of a [Monitor] is exact.
const MonitorCap = 1 << 14

// stamp is all that a monitor remembers of a signal.
type stamp struct {
	seq uint64
	at  int64
}

func (m *Monitor) record(seq uint64, f *fact) {
	m.last = seqFact{seq, *f}
	if m.span <= 0 {
		m.total++
		return
	}
	m.expire(f.at)
	m.push(stamp{seq, f.at})
}

// push adds the newest. Beyond MonitorCap, it drops the oldest.
func (m *Monitor) push(s stamp) {
	if m.stamps.N == MonitorCap {
		m.stamps.Drop()
	}
	*m.stamps.Push() = s
}

func (m *Monitor) remove(seq uint64, f *fact) {
	if m.span <= 0 {
		restored := f.more != nil && f.more.restored
		if seq >= m.from && !(restored && seq >= m.made) {
			m.total--
		}
	} else {
		i := sort.Search(m.stamps.N, func(i int) bool { return m.stamps.Get(i).seq >= seq })
		if i < m.stamps.N && m.stamps.Get(i).seq == seq {
			m.stamps.Remove(i)
		}
	}
	if seq == m.last.seq {
		m.last = seqFact{}
	}
}

func (m *Monitor) expire(now int64) {
	for m.stamps.N > 0 && m.stamps.Get(0).at < now-m.span {
		m.stamps.Drop()
	}
}

func (m *Monitor) countLocked() int {
	if m.span <= 0 {
		return m.total
	}
	if m.stamps.N > 0 {
		m.expire(m.names.clock.Now())
	}
	return m.stamps.N
}

// Count is the number of signals within the span.
func (m *Monitor) Count() int {
	m.names.mu.Mutex.Lock() // costs less than spinning; counting rarely contends in a loop
	n := m.countLocked()
	m.names.mu.Unlock()
	return n
}

// Last returns the newest signal that was counted. Ok is false if Count is 0, or if the
// newest signal was retracted and no newer one has come.
func (m *Monitor) Last() (Signal, bool) {
	m.names.mu.Lock()
	defer m.names.mu.Unlock()
	if m.last.seq == 0 || m.countLocked() == 0 {
		return Signal{}, false
	}
	return m.last.fact.signal(m.last.seq, m.names.clock), true
}

// Below returns how long it will take until Count is less than n if no more signals
// arrive. It is 0 if Count is less than n now. It is the largest Duration if only
// retractions can reduce Count that far.
func (m *Monitor) Below(n int) time.Duration {
	m.names.mu.Lock()
	defer m.names.mu.Unlock()
	count := m.countLocked()
	switch {
	case count < n:
		return 0
	case m.span <= 0 || n <= 0:
		return clock.MaxDuration
	}
	leaving := m.stamps.Get(count - n) // the newest signal that has to go
	return time.Duration(clock.Later(leaving.at, m.span) - m.names.clock.Now() + 1)
}

func (m *Monitor) forget() { m.stamps, m.total, m.last = fifo.Queue[stamp]{}, 0, seqFact{} }

// Reset forgets the signals counted so far.
func (m *Monitor) Reset() {
	m.names.mu.Lock()
	m.forget()
	m.from = m.names.ring.head
	m.check()
	m.names.unlock()
}

// OnCount calls fn(true) when Count reaches high, and fn(false) when Count has fallen to
// low because signals were retracted or are too old. If Count is high already, OnCount
// calls fn(true) at once. The calls alternate, starting with true, and never overlap. The
// last call has the current state. A change that is over before fn can be called may be
// left out. Fn is called without a lock, on the goroutine that raises or retracts, or on
// the goroutine of a timer. A slow fn delays that goroutine, and all goroutines that raise
// signals meanwhile. Panics of fn are counted in [SinkStats]. For cancel see
// [Sink.Subscribe]; Stop cancels, too. OnCount panics if fn is nil, if low is negative, or
// if high is not greater than low.
func (m *Monitor) OnCount(high, low int, fn func(over bool)) (cancel func()) {
	w := hook.NewWatermark("signals: OnCount", high, low, fn, m.names.panics)
	m.names.mu.Lock()
	var number uint64
	if !m.stopped {
		number = m.marks.Add(w)
		m.checkMark(w)
	}
	m.names.unlock()
	return func() {
		m.names.mu.Lock()
		m.marks.Remove(number)
		w.Told.Cancel()
		m.names.mu.Unlock()
		w.Told.Wait()
	}
}

// check compares the count with the watermarks.
func (m *Monitor) check() {
	for _, w := range m.marks.All {
		if w != nil {
			m.checkMark(w)
		}
	}
}

func (m *Monitor) checkMark(w *hook.Watermark) {
	n := m.countLocked()
	if w.See(n) {
		m.names.after.Tell(w)
	}
	if w.Over.Load() && m.span > 0 {
		last := m.stamps.Get(n - w.Low - 1) // the newest signal that has to go
		m.ageing.Set(m.names.clock, clock.Later(clock.Later(last.at, m.span), 1), m.age)
	}
}

func (m *Monitor) age() {
	m.names.mu.Lock()
	m.ageing.Armed = false
	m.check()
	m.names.unlock()
}

// Stop ends the counting; Count is 0 from then on. It may be called many times.
func (m *Monitor) Stop() {
	t := m.names
	t.mu.Lock()
	defer t.mu.Unlock()
	m.stopped = true
	m.forget()
	for _, w := range m.marks.Snapshot() {
		w.Told.Cancel()
	}
	m.marks = lists.List[*hook.Watermark]{}
	m.ageing.Stop()
	watching[*Monitor]{&t.routes, &t.monitors}.Remove(m.number)
}

// backfill counts facts from before the monitor was made.
func (m *Monitor) backfill(known []seqFact) {
	slices.SortFunc(known, bySeq)
	since, last := m.stamps, m.last
	m.stamps = fifo.Queue[stamp]{}
	for i := range known {
		if seq := known[i].seq; seq < m.made {
			m.from = min(m.from, seq)
			m.record(seq, &known[i].fact)
		}
	}
	for since.N > 0 {
		m.push(*since.Get(0))
		since.Drop()
	}
	if last.seq != 0 {
		m.last = last
	}
	if m.span > 0 {
		m.expire(m.names.clock.Now())
	}
}
