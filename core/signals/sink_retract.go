package signals

import (
	"iter"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
)

// Retract takes back the signals that match pattern and were raised directly on this
// sink, or copied to it by [Sink.Forward]. It returns how many there were. Signals that
// operations have raised on this sink stay (see Retract of an operation), and so do held
// signals. Gates such as DeferOn see the change at once.
//
//ephemeral:pattern {pattern}
func (s *Sink) Retract(pattern string) int {
	return s.take(Query{Pattern: orNothing(pattern)}, byPattern(glob.Compile(pattern)), true)
}

// Forget removes the signals that q selects, whoever raised them. It calls no handler,
// and monitors keep counting the signals. Held signals stay. Operations still show their
// own signals. Use it in code that owns the sink, such as a test or a tool. Forget
// returns how many signals it has removed. With the pattern "*", it removes all. It panics if q is
// empty.
func (s *Sink) Forget(q Query) int {
	need(q != (Query{}), "Forget needs a Query that selects something: for all signals, use the pattern \"*\"")
	return s.take(q, "", false)
}

// take removes the facts in the window that q selects. As a retraction, it removes only
// facts that were raised directly on the sink, and calls the handlers.
func (s *Sink) take(q Query, by string, retract bool) (taken int) {
	w := s.search(q)
	var gone []Signal
	for more := true; more; {
		more = w.some(func(seq uint64, f *fact) bool {
			if f.holds() || retract && f.operation != 0 {
				return true
			}
			if retract && s.retractions.Len() > 0 {
				gone = append(gone, f.signal(seq, s.names.clock))
			}
			s.remove(seq, retract)
			taken++
			return true
		})
	}
	for _, signal := range gone {
		s.tellRetracted(signal, by)
	}
	return taken
}

// Restore puts signals that were saved with Sense back on the sink, in the given order.
// It calls no handlers, and monitors do not count the signals; gates see them. They keep
// name, key, operation, source, payload and causes, and get new Seqs. They count as raised
// directly on the sink, so [Sink.Retract] retracts them. A signal keeps its time, with two
// exceptions. If the sink has a newer signal, the restored signal gets the time of that
// newer one. If the time of the restored signal is in the future, it gets the current
// time. So restore first and raise afterwards. Restore skips signals that are too old.
// Held signals come back as raised ones. It returns how many were put back.
//
//ephemeral:raises *
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
		now = s.names.clock.Now()
	}
	at := min(s.names.clock.Offset(signal.Time), now)
	stored := signal.Name != "" && clock.Later(at, s.maxAge) > now
	if stored {
		if r := &s.ring; r.head > r.tail {
			at = max(at, r.at(r.head-1).at)
		}
		s.latest = max(s.latest, at)
		f, seq := s.place()
		f.name, f.key, f.operation, f.source, f.at = signal.Name, signal.Key, 0, nil, at
		f.more = &more{
			payload: signal.payload, cause: signal.cause, restored: true,
			operation: signal.Operation, source: signal.Source, node: signal.Node,
		}
		r := s.names.of(signal.Name)
		s.names.entered(&route{gates: r.gates, counters: r.counters}, f, seq)
	}
	s.unlock()
	return stored
}

// byPattern is the Pattern of a Retraction.
func byPattern(p glob.Pattern) string {
	if _, exact := p.Exact(); exact {
		return ""
	}
	return p.Text
}
