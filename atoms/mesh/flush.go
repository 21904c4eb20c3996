package mesh

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A MissedError says that nodes have not raised some signals of this node: they did not arrive,
// were older than MaxLate, or came faster than MaxRate. Signals that were not sent count, too,
// raised or held: see [Stats].
type MissedError struct {
	Nodes map[string]uint64 // how many, by the names of the nodes
}

func (e *MissedError) Error() string { return fmt.Sprintf("mesh: signals were missed: %v", e.Nodes) }

// Flush waits until every node that has been heard within Lease has raised and holds all that
// was raised and held here before: gates are known to be closed there. Nodes that are heard
// first while Flush waits must answer, too; nodes that fall silent need not. So Flush returns nil
// at once if no other node is heard; see [SignalAlone]. It costs a message and an answer of each
// node.
//
// It returns a [*MissedError] if a node has missed signals since the last Flush that returned.
// What a node refuses it has not missed: its Accept decides. While [SignalDuplicate] is held,
// nobody answers. If ctx ends first, it returns the cause of ctx; after Close, [core.ErrClosed].
// Do not call it in a handler of a signal of another node: it may wait for a node that waits for
// the handler.
func (m *Mesh) Flush(ctx context.Context) error {
	a := &ask{missed: map[string]uint64{}, done: make(chan struct{})}
	m.do(func() {
		a.last = m.own.last
		m.own.asks[a], m.own.beat = true, true
	})
	defer m.do(func() { delete(m.own.asks, a) })
	select {
	case <-a.done:
		if len(a.missed) > 0 {
			return &MissedError{a.missed}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.done:
		return core.ErrClosed
	}
}

// ask is a call of Flush.
type ask struct {
	last   uint64 // facts up to this number go before it
	beat   uint64 // the first beat that asks; 0: not yet
	missed map[string]uint64
	done   chan struct{} // closed at the end
}

// settle ends the asks that all nodes have answered.
func (o *own) settle(t *table) {
	for a := range o.asks {
		answered := a.beat > 0
		for _, n := range t.counted {
			answered = answered && n.acked.Ask >= a.beat
		}
		if !answered {
			continue
		}
		for _, n := range t.counted {
			if lost := n.acked.Lost; lost > n.flushed {
				a.missed[n.name] = lost - n.flushed
				n.flushed = lost
			}
		}
		delete(o.asks, a)
		close(a.done)
	}
}
