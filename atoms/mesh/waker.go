package mesh

import (
	"slices"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Wake calls the functions of [Mesh.OnWake] for that queue on all nodes, here on this
// goroutine. It does not wait for the others. Several calls may be one message; a message may
// be lost.
//
// Wake and OnWake make a mesh a waker of durable queues: see durable.Options.Waker.
func (m *Mesh) Wake(queue string) {
	m.wakeHere(queue)
	m.do(func() {
		if !slices.Contains(m.own.wakes, queue) {
			m.own.wakes = append(m.own.wakes, queue)
		}
	})
}

// OnWake calls fn after each Wake for that queue on any node, until cancel is called. Fn must
// not block: while it does, nothing else of the connection's messages for wakes arrives. A panic of fn is
// held back.
func (m *Mesh) OnWake(queue string, fn func()) (cancel func()) {
	m.wakers.Store(&fn, queue)
	return func() { m.wakers.Delete(&fn) }
}

func (m *Mesh) wakeHere(queue string) {
	for fn, of := range m.wakers.Range {
		if of == queue {
			guard.Do("function of OnWake", *fn.(*func()))
		}
	}
}
