package mesh

import "context"

// maxArrivals is how many messages with raised facts of other nodes may wait while a handler
// runs: at most 16 MB. What comes beyond is lost and counted as missed.
const maxArrivals = 256

// arrival is a message that waits behind others with raised facts.
type arrival struct {
	run  string
	data []byte   // of raised facts
	beat *message // or nil
}

// raise raises the facts of a message here.
func (m *Mesh) raise(_ context.Context, a arrival) error {
	msg := a.beat
	if msg == nil {
		msg = decode(a.data, a.run)
	}
	m.mu.Lock()
	var o *origin
	switch {
	case m.closed:
	case msg == nil:
		m.table.refused++
	default:
		o = m.table.arrive(m.now(), msg)
	}
	m.unlock()
	if o == nil {
		return nil
	}
	for i := range msg.Items {
		it := &msg.Items[i]
		m.mu.Lock()
		ok := !m.closed && m.table.admit(m.now(), o, it, msg.Sent)
		m.mu.Unlock()
		if ok {
			m.record(it, o.name, false)
		}
	}
	if a.beat == nil {
		return nil
	}
	m.mu.Lock()
	o.passed(msg.Last)
	missed := o.Missed - o.told
	o.told = o.Missed
	if msg.Ask > 0 {
		m.own.mail = append(m.own.mail, letter{a.run, message{Is: isAck, Run: m.table.run, Ask: msg.Ask, Last: msg.Last, Lost: o.lost()}})
	}
	m.unlock()
	if missed > 0 {
		Missed.Raise(m.sink, o.name, missed)
	}
	return nil
}

// record raises or holds a fact of another node.
func (m *Mesh) record(it *item, node string, held bool) (release func()) {
	s, ok := m.carriers.signal(it, held)
	if ok {
		release, ok = m.sink.Import(s, node)
	}
	if !ok {
		m.mu.Lock()
		m.table.refused++
		if !held {
			m.table.raised--
		}
		m.mu.Unlock()
	}
	return release
}

// perform does what the table wants.
func (m *Mesh) perform() {
	m.mu.Lock()
	all := m.table.effects
	m.table.effects = nil
	m.mu.Unlock()
	for _, e := range all {
		switch {
		case e.beat != nil:
			m.facts.TryEnqueue(context.Background(), arrival{run: e.beat.Run, beat: e.beat})
		case e.lost != "":
			m.sink.RaiseKey(SignalLost, e.lost)
		case e.ends != nil && e.ends.release != nil:
			e.ends.release()
		case e.begins != nil && e.begins.node == "":
			e.begins.release = m.sink.Hold(e.begins.item.Name, e.begins.item.Key, 0)
		case e.begins != nil:
			e.begins.release = m.record(e.begins.item, e.begins.node, true)
		}
	}
}
