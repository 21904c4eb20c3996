package signals

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// Relay calls out for every signal of s that is to be sent to other processes. These are the
// signals that [Sink.Forward] would copy, without those that [Sink.Import] has recorded: so a
// signal does not go from process to process. Held signals that match and are present
// already come first, on this goroutine, and before Relay returns.
//
// Out is called as Forward raises a copy: on the raiser's goroutine, after the handlers of s,
// with no lock held. While it blocks, the raiser waits. A panic is counted in [SinkStats].
// For a held signal, lease is the rest of its lease; 0 means that it stands until it is
// released. Out may return a function for a held signal. It is called once, when the signal is
// released or the relay is cancelled, but not when the lease ends.
//
// Cancel waits for calls of out that are under way, but not inside a handler. After cancel,
// out is not called. Relay panics if out is nil.
//
//ephemeral:pattern {pattern}
func (s *Sink) Relay(pattern string, out func(signal Signal, lease time.Duration) (ended func())) (cancel func()) {
	need(out != nil, "Relay needs a function")
	relay := func(f *forward, p passage) {
		if p.signal.Node != "" {
			return
		}
		if !p.signal.Held {
			out(p.signal, 0)
			return
		}
		if lease, standing := s.leaseLeft(p.signal.Seq); standing {
			r := &relayed{by: f, ended: out(p.signal, lease), panics: &s.panics}
			if !s.link(p.signal.Seq, r) {
				r.Tell()
			}
		}
	}
	s.lockFresh()
	cancel = s.connect(pattern, relay)
	made := []*forward{s.names.forwards.Last().it.(*forward)}
	var standing []seqFact
	for _, h := range s.held {
		if made[0].Matches(h.fact.name) {
			standing = append(standing, h.seqFact)
		}
	}
	s.unlock()
	slices.SortFunc(standing, bySeq)
	for _, h := range standing {
		s.send(made, passage{signal: h.fact.signal(h.seq, s.names.clock)})
	}
	return cancel
}

// relayed is a held fact that a Relay has sent.
type relayed struct {
	by     *forward
	ended  func() // or nil
	panics *atomic.Uint64
	told   atomic.Bool
}

func (r *relayed) madeBy() *forward { return r.by }

func (r *relayed) End(a *hook.Effects) { a.Tell(r) }

func (r *relayed) Tell() {
	if r.ended == nil || r.told.Swap(true) {
		return
	}
	call := hook.New(glob.Pattern{}, func(*relayed) { r.ended() })
	hook.Deliver([]*hook.Hook[*relayed]{call}, false, &r, r.panics)
}

// Import records a signal of another process, as [Sink.Forward] records a copy: with its name,
// key, payload, source and causes, and with the time and a Seq of s. Its Node is node. Its
// Operation is 0, because ids of operations mean nothing in another process. [Signal.With] sets payload and
// causes. A [Sink.Relay] does not send the signal on, from this sink or from one that it
// is forwarded to. The causes count for [Propagation].
//
// A held signal stands until release is called. For other signals, release does nothing. Ok
// is false if nothing was recorded: in the cases in which [Sink.Raise] returns false. Import
// calls the handlers of s before it returns. It panics if node is empty.
//
//ephemeral:raises *
func (s *Sink) Import(signal Signal, node string) (release func(), ok bool) {
	need(node != "", "Import needs the name of a node")
	signal.Node, signal.Operation = node, 0
	h, ok := s.receive(passage{signal: signal}, 0, nil)
	if h == nil {
		return func() {}, ok
	}
	return func() { s.release(h) }, ok
}
