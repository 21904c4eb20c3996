package signals

import (
	"iter"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// Has reports whether a signal that matches pattern is present. A held signal is present,
// and so is one that the sink keeps only because it matches a gate.
//
//ephemeral:pattern {pattern}
func (s *Sink) Has(pattern string) bool {
	switch s.names.said(pattern) {
	case saysAbsent:
		return false
	case saysPresent:
		if s.isFresh() {
			return true
		}
	}
	s.prepareZero()
	s.mu.Mutex.Lock()
	n, c := s.names.count(pattern)
	if n > 0 && s.refresh() {
		n, c = s.names.count(pattern)
	}
	if c != nil {
		s.names.say(c)
	}
	s.unlock()
	return n > 0
}

// isFresh reports, without the lock, whether no fact can have ended by time operations that
// the model has started since the last look with the lock held.
func (s *Sink) isFresh() bool {
	until := s.fresh.Load()
	return until == clock.Never || until != 0 && s.names.clock.Now() < until
}

// refresh expires all that is due, and reports whether anything was. It records until when no fact
// ends by time. mu is held, but may be released meanwhile. Later facts end later than present ones,
// and get no time before now. Any other change that may end a fact earlier sets fresh to 0.
func (s *Sink) refresh() (due bool) {
	var now int64
	if s.maxAge != clock.Never || s.lease != clock.Never {
		now = s.names.clock.Now()
		s.latest = max(s.latest, now)
	}
	until := s.nextEnd(now)
	if due = until <= now; due {
		s.freshen()
		until = s.nextEnd(now)
	}
	if s.fresh.Load() != until {
		s.fresh.Store(until)
	}
	return due
}

// nextEnd returns when the next fact expires, by age or lease, or never. A new fact may
// come at next. The lock is held.
func (s *Sink) nextEnd(next int64) int64 {
	oldest := next
	if s.ring.tail < s.ring.head {
		oldest = s.ring.at(s.ring.tail).at
	}
	if len(s.kept) > 0 {
		oldest = min(oldest, s.kept[0].fact.at)
	}
	return min(s.lease, clock.Later(oldest, s.maxAge))
}

// Count returns how many signals that match pattern are present.
//
//ephemeral:pattern {pattern}
func (s *Sink) Count(pattern string) int {
	s.lockFresh()
	n, _ := s.names.count(pattern)
	s.unlock()
	return n
}

// Monitor counts the signals that match pattern over the last span. It begins with the
// present signals.
//
//ephemeral:pattern {pattern}
func (s *Sink) Monitor(pattern string, span time.Duration) *Monitor {
	p := glob.Compile(pattern)
	s.lockFresh()
	var known []seqFact
	s.each(p, s.ring.stored, func(seq uint64, f *fact) bool {
		known = append(known, seqFact{seq, *f})
		return true
	})
	m := s.names.addMonitor(p, span, known, s.ring.head)
	s.unlock()
	return m
}

// Sense yields the signals that q selects, held ones included, oldest first. A query for
// one exact name looks only at signals of that name, and at those that have come since the
// last such query. Other queries look at every signal that is not older than Within.
func (s *Sink) Sense(q Query) iter.Seq[Signal] {
	const batch = 64 // copied under the lock, in a few microseconds, and yielded without it
	return func(yield func(Signal) bool) {
		w := s.search(q)
		var buffer []Signal
		for more := true; more; {
			buffer = buffer[:0]
			more = w.some(func(seq uint64, f *fact) bool {
				buffer = append(buffer, f.signal(seq, s.names.clock))
				return len(buffer) < batch
			})
			for _, signal := range buffer {
				if !yield(signal) {
					return
				}
			}
		}
	}
}

// search yields the facts that a query selects and that exist at its start, oldest first.
type search struct {
	sink      *Sink
	filter    filter
	seqs      []uint64 // facts to look at, in order, and then
	next, end uint64   // the facts from next to end
}

// search starts a search.
func (s *Sink) search(q Query) *search {
	w := &search{sink: s, filter: q.compile()}
	s.lockFresh()
	defer s.unlock()
	cutoff := q.cutoff(s.names.clock.Now())
	w.next, w.end = max(s.ring.since(cutoff), q.AfterSeq+1), s.ring.head
	if q.Held { // then the window has none
		w.next = w.end
	}
	if name, exact := w.filter.pattern.Exact(); exact && w.next+linkSegment < w.end {
		s.catchUp()
		if w.end = s.ring.head; w.follow(name) {
			w.next = w.end
		}
	}
	outside := func(seq uint64, f *fact) {
		if f.at >= cutoff && seq < w.next && (q.Pattern == "" || w.filter.pattern.Matches(f.name)) {
			w.seqs = append(w.seqs, seq)
		}
	}
	for i := range s.kept {
		outside(s.kept[i].seq, &s.kept[i].fact)
	}
	for seq, h := range s.held {
		outside(seq, &h.fact)
	}
	slices.Sort(w.seqs)
	w.seqs = slices.Compact(w.seqs) // a fact may have moved from the window to the kept ones
	return w
}

// some visits the next chunk of facts with the lock held, until visit returns false. It reports
// whether there may be more facts.
func (w *search) some(visit func(seq uint64, f *fact) (more bool)) (more bool) {
	s := w.sink
	s.mu.Lock()
	defer s.unlock()
	for range chunk {
		seq := w.next
		switch {
		case len(w.seqs) > 0:
			seq, w.seqs = w.seqs[0], w.seqs[1:]
		case seq < w.end:
			w.next++
		default:
			return false
		}
		if f := s.find(seq); f != nil && w.filter.acceptsFact(seq, f) && !visit(seq, f) {
			break
		}
	}
	return true
}

// acceptsFact is accepts before a signal is made.
func (f *filter) acceptsFact(seq uint64, x *fact) bool {
	return f.acceptsName(x.name, x.key, seq) && (!f.Held || x.holds()) && (f.Operation == 0 && f.Source == "" || f.acceptsOrigin(x.origin()))
}

// follow finds the facts of an exact name in the window by the index, and facts that are not
// in it one by one. It reports whether it has found all. The lock is held, but released now
// and then; meanwhile the index may be cleared.
func (w *search) follow(name string) (all bool) {
	s := w.sink
	for seq := max(w.next, s.index.end, s.ring.tail); seq < w.end; seq++ {
		if s.ring.at(seq).name == name {
			w.seqs = append(w.seqs, seq)
		}
	}
	seq, _ := s.index.newest(name)
	for seq != 0 && seq >= max(w.next, s.ring.tail) {
		w.seqs = append(w.seqs, seq)
		if len(w.seqs)%chunk == 0 {
			s.unlock()
			s.mu.Lock()
			if seq < s.ring.tail {
				break
			}
			if seq >= s.index.end || s.ring.at(seq).name != name { // a new index has no links from gaps
				w.seqs = nil
				return false
			}
		}
		seq = s.index.at(&s.ring, seq).previous
	}
	return true
}

// A Sensor shows signals. A [Sink] shows all signals that were raised on it. A
// coordinator shows the signals that the operations in its window have raised. A signal
// is present while the Sensor shows it. All methods are safe for concurrent use.
type Sensor interface {
	// Has reports whether a signal that matches pattern is present. Its cost does not
	// depend on the number of signals. There are two exceptions. The first call with a
	// pattern, and calls that alternate between more than 64 wildcard patterns, look at
	// each signal, or, for a coordinator, at each name. The first call with a name, and
	// calls that alternate between more than 64 names, look at each signal that has come
	// since the last such call.
	//
	//ephemeral:pattern {pattern}
	Has(pattern string) bool
	// Count returns how many signals that match pattern are present. Its cost does not
	// depend on their number either, with the same exceptions. It always takes a lock.
	//
	//ephemeral:pattern {pattern}
	Count(pattern string) int
	// Sense yields the signals that q selects and that are present when the loop starts,
	// oldest first. A signal that leaves during the loop may be missing. No lock is held
	// while the loop's body runs.
	Sense(q Query) iter.Seq[Signal]
	// Sink returns the sink on which the signals are raised. A sink returns itself.
	Sink() *Sink
	// Monitor counts the signals matching pattern over the last span, starting
	// with those present; see [Monitor].
	//
	//ephemeral:pattern {pattern}
	Monitor(pattern string, span time.Duration) *Monitor
}
