package core

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// Has reports whether a signal that matches pattern is present. A held signal is present,
// and so is one that the sink keeps only because it matches a gate.
func (s *Sink) Has(pattern string) bool {
	if s.isFresh() && s.names.knows(pattern) {
		return true
	}
	now := s.lockFresh()
	n := s.names.count(pattern)
	if n > 0 {
		s.names.learn(pattern)
		s.refresh(now)
	}
	s.unlock()
	return n > 0
}

// isFresh reports, without the lock, whether no fact can have ended by time since
// somebody looked last with the lock held.
func (s *Sink) isFresh() bool {
	until := s.fresh.Load()
	return until == never || until != 0 && s.names.clock.now() < until
}

// refresh notes until when no fact ends by time, given that none is due. mu is
// held. Facts to come end later than those that are there, and whatever else may
// end one earlier sets fresh to 0.
func (s *Sink) refresh(now int64) {
	if until := s.nextEnd(now); s.fresh.Load() != until {
		s.fresh.Store(until)
	}
}

// nextEnd is when the next fact expires, by age or lease, or never. Another one that
// ages may come at next. The lock is held.
func (s *Sink) nextEnd(next int64) int64 {
	oldest := next
	if s.ring.tail < s.ring.head {
		oldest = s.ring.at(s.ring.tail).at
	}
	if len(s.kept) > 0 {
		oldest = min(oldest, s.kept[0].fact.at)
	}
	return min(s.lease, later(oldest, s.maxAge))
}

// Count returns how many signals that match pattern are present.
func (s *Sink) Count(pattern string) int {
	s.lockFresh()
	n := s.names.count(pattern)
	s.unlock()
	return n
}

// Monitor counts the signals that match pattern over the last span. It begins with those
// that are present.
func (s *Sink) Monitor(pattern string, span time.Duration) *Monitor {
	p := compile(pattern)
	s.lockFresh()
	var known []seqFact
	s.each(p, func(seq uint64, f *fact) bool {
		known = append(known, seqFact{seq, *f})
		return true
	})
	m := s.names.addMonitor(p, span, known, s.ring.head)
	s.unlock()
	return m
}

// each visits all matching facts: those of one name that are in the window newest
// first, until visit wants no older ones; the same for those that are kept; and those
// that are held. The lock is held.
func (s *Sink) each(p pattern, visit func(seq uint64, f *fact) (older bool)) {
	for text, entry := range s.names.live {
		if !p.matches(text) {
			continue
		}
		for seq := entry.newest; seq != 0 && seq >= s.ring.tail; {
			f := s.ring.at(seq)
			if f.name == entry && !visit(seq, f) {
				break
			}
			seq = f.previous
		}
	}
	for i := len(s.kept) - 1; i >= 0; i-- {
		if k := &s.kept[i]; p.matches(k.fact.name.text) && !visit(k.seq, &k.fact) {
			break
		}
	}
	for seq, h := range s.held {
		if p.matches(h.fact.name.text) {
			visit(seq, &h.fact)
		}
	}
}

// Sense yields the signals that q selects, also held ones, oldest first. A query for one
// exact name looks only at signals of that name. Other queries look at every signal that
// is not older than Within.
func (s *Sink) Sense(q Query) iter.Seq[Signal] {
	const batch = 256 // copied under the lock, and yielded without it
	return func(yield func(Signal) bool) {
		w := s.search(q)
		var buffer []Signal
		for more := true; more; {
			buffer = buffer[:0]
			more = w.some(func(_ *fact, signal Signal) bool {
				buffer = append(buffer, signal)
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

// search goes through the facts that a query selects, oldest first, as of its start.
type search struct {
	sink      *Sink
	filter    filter
	seqs      []uint64 // to look at, in order, and then
	next, end uint64   // from the one to the other
}

// search starts a search.
func (s *Sink) search(q Query) *search {
	w := &search{sink: s, filter: q.compile()}
	s.lockFresh()
	defer s.unlock()
	cutoff := q.cutoff(s.names.clock.now())
	w.next, w.end = max(s.ring.since(cutoff), q.AfterSeq+1), s.ring.head
	if name, exact := w.filter.pattern.exact(); exact {
		w.follow(name)
		w.next = w.end
	}
	outside := func(seq uint64, f *fact) {
		if f.at >= cutoff && seq < w.next && (q.Pattern == "" || w.filter.pattern.matches(f.name.text)) {
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
	w.seqs = slices.Compact(w.seqs) // some may be kept since they were in the window
	return w
}

// some visits the next chunk of facts and their signals, with the lock held, until visit
// returns false, and reports whether there may be more of them.
func (w *search) some(visit func(*fact, Signal) (more bool)) (more bool) {
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
		if f := s.find(seq); f != nil {
			signal := f.signal(seq, s.names.clock)
			if w.filter.accepts(&signal) && !visit(f, signal) {
				break
			}
		}
	}
	return true
}

// follow finds the facts of an exact name in the window by their chain. The lock is held,
// except now and then.
func (w *search) follow(name string) {
	s := w.sink
	entry := s.names.lookup(name)
	if entry == nil {
		return
	}
	for seq := entry.newest; seq != 0 && seq >= max(w.next, s.ring.tail); seq = s.ring.at(seq).previous {
		w.seqs = append(w.seqs, seq)
		if len(w.seqs)%chunk == 0 {
			s.mu.Unlock()
			s.mu.Lock()
			if seq < s.ring.tail {
				return
			}
		}
	}
}

// Retract takes back the signals that match pattern and were raised directly on this
// sink, or copied to it by [Sink.Forward]. It returns how many there were. Signals that
// operations have raised on this sink stay (see [Operation.Retract]), and so do held
// signals. Gates such as [Options.DeferOn] see the change at once.
func (s *Sink) Retract(pattern string) int {
	return s.take(Query{Pattern: orNothing(pattern)}, byPattern(compile(pattern)), true)
}

// byPattern is the Pattern of a Retraction.
func byPattern(p pattern) string {
	if _, exact := p.exact(); exact {
		return ""
	}
	return p.text
}

// Forget removes the signals that q selects, whoever raised them. It calls no handler,
// and monitors keep counting the signals. Held signals stay. Operations still show their
// own signals. Use it in code that owns the sink, such as a test or a tool. Forget
// returns how many signals it has removed. It panics if q selects everything: use
// ForgetAll.
func (s *Sink) Forget(q Query) int {
	need(q != (Query{}), "Forget needs a Query that selects something: to remove all facts call ForgetAll")
	return s.take(q, "", false)
}

// ForgetAll is Forget for all signals.
func (s *Sink) ForgetAll() int { return s.take(Query{}, "", false) }

// take removes the facts in the window that q selects; as a retraction only those
// raised directly on the sink, and calls the handlers.
func (s *Sink) take(q Query, by string, retract bool) (taken int) {
	w := s.search(q)
	var gone []Signal
	for more := true; more; {
		more = w.some(func(f *fact, signal Signal) bool {
			if signal.Held || retract && f.operation != 0 {
				return true
			}
			if retract && len(s.retractions) > 0 {
				gone = append(gone, signal)
			}
			s.remove(signal.Seq, retract)
			taken++
			return true
		})
	}
	for _, signal := range gone {
		s.tellRetracted(signal, by)
	}
	return taken
}

// SubscribeRetracted calls fn for every signal that matches pattern and is taken back: by
// [Sink.Retract], by its operation, or by the release of a held signal. Ageing, eviction
// and the end of a lease are no retractions. It calls fn on the goroutine that retracts.
// The rules of [Sink.Subscribe] hold for fn and cancel. SubscribeRetracted panics if fn
// is nil.
func (s *Sink) SubscribeRetracted(pattern string, fn func(Retraction)) (cancel func()) {
	need(fn != nil, "SubscribeRetracted needs a function")
	return newHook(compile(pattern), fn).attach(&s.mu, &s.retractions, func() {})
}

// tellRetracted calls the subscribers to the retraction of such a signal. No
// lock is held.
func (s *Sink) tellRetracted(signal Signal, by string) {
	s.mu.Lock()
	hooks := s.retractions
	s.mu.Unlock()
	s.tell(hooks, signal, by, &s.panics)
}

// tell calls those of hooks, which s.mu guards, that want to know of a retraction,
// unless that is part of an endless loop.
func (s *Sink) tell(hooks []*hook[Retraction], signal Signal, by string, panics *atomic.Uint64) {
	if len(hooks) == 0 {
		return
	}
	s.mu.Lock()
	if crowded(hooks) {
		s.mu.Unlock()
		w := askStack()
		s.mu.Lock()
		if endless(&s.runaways, w, s.suspects, hooks) {
			s.mu.Unlock()
			s.blocked.Add(1)
			return
		}
	}
	var hear []*hook[Retraction]
	appendMatching(&hear, hooks, signal.Name)
	s.mu.Unlock()
	r := Retraction{Signal: signal, Time: s.names.clock.wall(s.names.clock.now()), Pattern: by}
	deliver(hear, false, &r, panics)
}

// Restore puts signals that were saved with Sense back on the sink, in the given order.
// It calls no handlers, and monitors do not count the signals; gates see them. They keep
// name, key, operation, source, payload and causes, and get new Seqs. They count as raised
// directly on the sink, so [Sink.Retract] retracts them. A signal keeps its time, with two
// exceptions. If the sink has a newer signal, the restored signal gets the time of that
// newer one. If the time of the restored signal is in the future, it gets the current
// time. So restore first and raise afterwards. Restore skips signals that are too old.
// Held signals come back as raised ones. It returns how many were put back.
func (s *Sink) Restore(signals iter.Seq[Signal]) (restored int) {
	need(signals != nil, "Restore needs signals, not nil: slices.Values makes them of a slice")
	for signal := range signals {
		if s.restore(&signal) {
			restored++
		}
	}
	return restored
}

func (s *Sink) restore(signal *Signal) bool {
	now := s.lockFresh()
	if now == 0 {
		now = s.names.clock.now()
	}
	at := min(s.names.clock.offset(signal.Time), now)
	stored := signal.Name != "" && later(at, s.maxAge) > now
	if stored {
		if r := &s.ring; r.head > r.tail {
			at = max(at, r.at(r.head-1).at)
		}
		s.latest = max(s.latest, at)
		entry := s.names.intern(signal.Name)
		s.names.enter(entry)
		f, seq := s.place(entry)
		f.key, f.operation, f.source, f.at = signal.Key, 0, nil, at
		f.more = &more{
			payload: signal.payload, cause: signal.cause, restored: true, operation: signal.Operation, source: signal.Source,
		}
		(&route{gates: entry.route.gates}).notice(f, seq, &s.after)
	}
	s.unlock()
	return stored
}
