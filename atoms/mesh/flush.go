package mesh

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A MissedError says that nodes have not raised some signals of this node: they did not arrive,
// were older than MaxLate, or came faster than MaxRate.
type MissedError struct {
	Nodes map[string]uint64 // how many, by the names of the nodes
}

func (e *MissedError) Error() string { return fmt.Sprintf("mesh: signals were missed: %v", e.Nodes) }

// Flush waits until every node that has been heard within Lease has raised and holds all that
// was raised and held here before: gates are known to be closed there. Nodes that are heard
// first while Flush waits must answer, too; nodes that fall silent need not. So Flush returns nil
// at once if no other node is heard; see [SignalAlone]. It costs two messages and two answers of
// each node.
//
// It returns a [*MissedError] if a node has missed signals since the last Flush that returned.
// While [SignalDuplicate] is held, nobody answers. If ctx ends first, it returns the cause of ctx; after Close, [core.ErrClosed]. Do not call it
// in a handler of a signal of another node: it may wait for a node that waits for the handler.
func (m *Mesh) Flush(ctx context.Context) error {
	a := &ask{answers: map[string]*answers{}, due: true, done: make(chan struct{})}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return core.ErrClosed
	}
	a.after = m.own.last
	m.own.lastAsk++
	id := m.own.lastAsk
	m.own.asks[id] = a
	m.unlock()
	var err error
	select {
	case <-a.done:
		if len(a.missed) > 0 {
			err = &MissedError{a.missed}
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-m.done:
		err = core.ErrClosed
	}
	m.mu.Lock()
	delete(m.own.asks, id)
	m.mu.Unlock()
	return err
}

// ask is a call of Flush.
type ask struct {
	after   uint64              // facts up to this number go before it
	due     bool                // it is to be sent
	answers map[string]*answers // by run
	missed  map[string]uint64
	done    chan struct{} // closed at the end
	ended   bool
}

// answers are those of a run.
type answers struct {
	state, facts bool
	lost         uint64
}

func (a *ask) ack(m *message) {
	of := a.answers[m.Run]
	if of == nil {
		of = new(answers)
		a.answers[m.Run] = of
	}
	switch m.Of {
	case topicState:
		of.state = true
	case topicFacts:
		of.facts, of.lost = true, m.Lost
	}
}

// settle ends the asks that all nodes have answered.
func (o *own) settle(t *table) {
	for _, a := range o.asks {
		if a.ended || !a.complete(t) {
			continue
		}
		a.ended, a.missed = true, map[string]uint64{}
		for _, n := range t.counted {
			if lost := a.answers[n.run].lost; lost > n.flushed {
				a.missed[n.name] = lost - n.flushed
				n.flushed = lost
			}
		}
		close(a.done)
	}
}

func (a *ask) complete(t *table) bool {
	for _, n := range t.counted {
		if of := a.answers[n.run]; of == nil || !of.state || !of.facts {
			return false
		}
	}
	return true
}
