package mesh

import (
	"context"
)

// maxArrivals is how many messages with raised facts of other nodes may wait while a handler
// runs: at most 16 MB. What comes beyond is lost and counted as missed.
const maxArrivals = 256

// arrival is a message with raised facts.
type arrival struct {
	run  string
	data []byte
}

// onState handles a message about held facts. It calls no handlers, so they do not delay beats.
func (m *Mesh) onState(run string, data []byte) {
	msg := decode(data)
	m.mu.Lock()
	if m.closed || msg == nil {
		m.refuse(msg == nil)
		return
	}
	need, complete := m.table.state(m.now(), run, msg)
	if need {
		m.own.replies = append(m.own.replies, reply{run, message{Is: isNeed}})
	}
	if msg.Is == isAsk && complete {
		m.out.Add(func() { m.answer(run, topicState, msg.Ask, 0) }) // after all that it asks about
	}
	m.unlock()
}

// refuse counts a message or a fact that makes no sense here, and unlocks.
func (m *Mesh) refuse(senseless bool) {
	if senseless {
		m.table.refused++
	}
	m.mu.Unlock()
}

// onFacts queues a message of raised facts, if there is room.
func (m *Mesh) onFacts(run string, data []byte) {
	m.facts.TryEnqueue(context.Background(), arrival{run, data})
}

// raise raises the facts of a message here.
func (m *Mesh) raise(_ context.Context, a arrival) error {
	msg := decode(a.data)
	m.mu.Lock()
	if m.closed || msg == nil {
		m.refuse(msg == nil)
		return nil
	}
	came := m.now()
	o, age := m.table.arrive(came, a.run, msg)
	m.unlock()
	if o == nil {
		return nil
	}
	for i := range msg.Items {
		it := &msg.Items[i]
		m.mu.Lock()
		now := m.now()
		ok := !m.closed && m.table.admit(now, o, it, age+now-came)
		m.mu.Unlock()
		if ok {
			m.record(it, o.name)
		}
	}
	m.mu.Lock()
	m.table.passed(o, msg.Last)
	lost := o.lost()
	m.mu.Unlock()
	if msg.Is == isAsk {
		m.answer(a.run, topicFacts, msg.Ask, lost)
	}
	return nil
}

// record raises a fact of another node.
func (m *Mesh) record(it *item, node string) {
	s, ok := m.carriers.signal(it, false)
	if ok {
		_, ok = m.sink.Import(s, node)
	}
	if !ok {
		m.mu.Lock()
		m.table.refused++
		m.table.received--
		m.mu.Unlock()
	}
}

// perform does what the table wants. It is called for one effect at a time.
func (m *Mesh) perform(e effect) {
	switch {
	case e.begins != nil:
		h := e.begins
		s, ok := m.carriers.signal(&h.item, true)
		if ok {
			h.release, ok = m.sink.Import(s, h.from.name)
		}
		if !ok {
			m.mu.Lock()
			m.refuse(true)
		}
	case e.ends != nil:
		if e.ends.release != nil {
			e.ends.release()
		}
	case e.raise == SignalMissed:
		Missed.Raise(m.sink, e.about.name, e.number)
	default:
		m.sink.RaiseKey(e.raise, e.about.name)
	}
}

// onAnswer handles a message to this node.
func (m *Mesh) onAnswer(_ string, data []byte) {
	msg := decode(data)
	m.mu.Lock()
	if m.closed || msg == nil {
		m.refuse(msg == nil)
		return
	}
	switch msg.Is {
	case isNeed:
		m.own.list = true
	case isAck:
		if a := m.own.asks[msg.Ask]; a != nil {
			a.ack(msg)
		}
	}
	m.unlock()
}

func (m *Mesh) answer(run, topic string, ask, lost uint64) {
	m.mu.Lock()
	m.own.replies = append(m.own.replies, reply{run, message{Is: isAck, Ask: ask, Of: topic, Lost: lost}})
	m.unlock()
}
