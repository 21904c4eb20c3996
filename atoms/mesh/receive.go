package mesh

import (
	"context"
	"time"
)

// maxArrivals is how many messages with raised facts of other nodes may wait while a handler
// runs: at most 16 MB. What comes beyond is lost and counted as missed.
const maxArrivals = 256

// raise raises the facts of a message here.
func (m *Mesh) raise(msg *message) {
	var o *origin
	m.do(func() { o = m.table.arrive(m.now(), msg) })
	for i := range msg.Items {
		m.mu.Lock()
		ok := o != nil && m.table.admit(m.now(), o, &msg.Items[i], msg.Sent)
		m.mu.Unlock()
		if ok {
			m.record(&msg.Items[i], o.name, false)
		}
	}
}

// pass handles a beat behind the facts that were sent before it.
func (m *Mesh) pass(beat *message) {
	var o *origin
	var missed, lost uint64
	m.do(func() {
		if o = m.table.arrive(m.now(), beat); o != nil {
			missed, lost = o.pass(beat.Last), o.lost()
		}
	})
	if missed > 0 {
		Missed.Raise(m.sink, o.name, missed)
	}
	if o != nil && beat.Ask > 0 {
		m.publish(topicTo, o.run, message{Is: isAck, Ask: beat.Ask, Last: beat.Last, Lost: lost}, nil)
	}
}

// now is the time of the table.
func (m *Mesh) now() int64 { return int64(time.Since(m.start)) }

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
	var all []effect
	m.do(func() { all, m.table.effects = m.table.effects, nil })
	for _, e := range all {
		switch h := e.begins; {
		case e.beat != nil:
			m.facts.TryEnqueue(context.Background(), func() { m.pass(e.beat) })
		case e.lost != "":
			m.sink.RaiseKey(SignalLost, e.lost)
		case h == nil && e.ends.release != nil:
			e.ends.release()
		case h != nil && h.node == "":
			h.release = m.sink.Hold(h.item.Name, h.item.Key, 0)
		case h != nil:
			h.release = m.record(h.item, h.node, true)
		}
	}
}
