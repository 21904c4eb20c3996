package mesh

import (
	"math"
	"slices"
	"time"
)

// send sends what there is.
func (m *Mesh) send() {
	for {
		m.mu.Lock()
		if !m.own.busy() {
			m.mu.Unlock()
			return
		}
		p, list, beat := m.own.take()
		m.mu.Unlock()
		m.sendHeld(&p, list)
		m.sendFacts(p.facts)
		if beat.Is != "" {
			m.publish(topicState, m.table.run, beat, nil)
		}
		for _, l := range p.mail {
			m.publish(topicTo, l.run, l.m, nil)
		}
		for _, queue := range p.wakes {
			m.bus.Publish(m.subject(topicWake, m.table.run), []byte(queue))
		}
	}
}

// sendHeld sends what has changed about held facts, and their list if somebody needs it.
func (m *Mesh) sendHeld(p *pending, list []share) {
	held := func(more message, part []share) {
		more.Is = isHeld
		m.publish(topicState, m.table.run, more, part)
	}
	if len(p.fresh) > 0 {
		for _, part := range parts(p.fresh) {
			held(message{}, part)
		}
	}
	for ended := range slices.Chunk(p.ended, maxBatch) { // facts may have been held for a moment
		held(message{Ended: ended}, nil)
	}
	if p.list {
		var from uint64
		all := parts(list)
		for i, part := range all {
			upto := uint64(math.MaxUint64)
			if i < len(all)-1 {
				upto = part[len(part)-1].id
			}
			held(message{From: from, Upto: upto}, part)
			from = upto
		}
	}
}

// sendFacts sends raised facts.
func (m *Mesh) sendFacts(facts []number) {
	var all []share
	for _, f := range facts {
		if s, ok := m.carriers.encode(f.n, f.signal, int64(time.Since(f.signal.Time))); ok {
			all = append(all, s)
		}
	}
	for _, part := range parts(all) {
		if len(part) > 0 {
			m.publish(topicFacts, m.table.run, message{Is: isFacts}, part)
		}
	}
	m.mu.Lock()
	m.own.sent += uint64(len(all))
	m.own.unsent += uint64(len(facts) - len(all))
	m.mu.Unlock()
}

// publish is called by one goroutine at a time. If it fails, the message is lost, like others.
func (m *Mesh) publish(topic, run string, msg message, items []share) {
	msg.Node, msg.Sent = m.opts.Name, m.stamps.at(m.clock())
	m.bus.Publish(m.subject(topic, run), encode(msg, items))
}
