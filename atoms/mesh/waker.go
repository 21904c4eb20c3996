package mesh

import "slices"

// Wake calls the functions of [Mesh.OnWake] for that queue on all nodes, here on this
// goroutine. It does not wait for the others. Several calls may be one message; a message may
// be lost. Names of more than 256 bytes wake only this node.
//
// Wake and OnWake make a mesh a waker of durable queues: see durable.Options.Waker.
func (m *Mesh) Wake(queue string) {
	m.wakeHere(queue)
	if len(queue) > maxName {
		return
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	if m.own.wakes == nil {
		m.own.wakes = map[string]bool{}
	}
	m.own.wakes[queue] = true
	m.mu.Unlock()
	m.sender.wake()
}

// OnWake calls fn after each Wake for that queue on any node, until cancel is called. Fn must
// not block: while it does, nothing else of the connection's messages for wakes arrives.
func (m *Mesh) OnWake(queue string, fn func()) (cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakers[queue] = append(m.wakers[queue], &fn)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		rest := slices.DeleteFunc(slices.Clone(m.wakers[queue]), func(f *func()) bool { return f == &fn })
		if m.wakers[queue] = rest; len(rest) == 0 {
			delete(m.wakers, queue)
		}
	}
}

func (m *Mesh) onWake(_ string, data []byte) {
	if len(data) <= maxName {
		m.wakeHere(string(data))
	}
}

func (m *Mesh) wakeHere(queue string) {
	m.mu.Lock()
	fns := m.wakers[queue]
	m.mu.Unlock()
	for _, fn := range fns {
		(*fn)()
	}
}
