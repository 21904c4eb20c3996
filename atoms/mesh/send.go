package mesh

import (
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// send sends what there is.
func (m *Mesh) send() {
	for busy := true; busy; {
		room := m.room() // not under the lock: the connection may wait for its network
		m.mu.Lock()
		m.own.fit(room)
		now := time.Now()
		sent := m.stamps.at(now)
		busy = m.own.busy()
		p, list, beat := m.own.take(sent)
		m.mu.Unlock()
		if len(p.changes) > 0 {
			m.publish(topicState, message{Is: isHeld, Sent: sent}, p.changes)
		}
		if p.list {
			m.publish(topicState, message{Is: isList, Sent: sent}, list)
		}
		m.sendFacts(p.facts, now, sent)
		if beat.Is != "" {
			m.publish(topicState, beat, nil)
			if err := m.denied(m.denial); err != nil {
				m.denial = err
				m.count(0, 1)
			}
		}
		if p.leave {
			m.publish(topicState, message{Is: isLeave, Sent: sent}, nil)
		}
		for _, queue := range p.wakes {
			m.bus.Publish(m.subject(topicWake, m.table.run), []byte(queue))
		}
	}
}

// sendFacts sends raised facts. They age while they are encoded.
func (m *Mesh) sendFacts(facts []signals.Signal, now time.Time, sent time.Duration) {
	var all []share
	room := m.room()
	for _, f := range facts {
		if s := m.carriers.encode(f.Seq, f, now.Sub(f.Time)); s.data != nil && len(s.data) < room {
			all = append(all, s)
		}
	}
	lost := 0
	if len(all) > 0 {
		lost = m.publish(topicFacts, message{Is: isFacts, Sent: sent}, all)
	}
	m.count(len(all)-lost, len(facts)-len(all))
}

// room is how many bytes of facts a message may have.
func (m *Mesh) room() int { return int(min(m.bus.MaxPayload(), maxMessage)) - maxHead }

// count counts facts.
func (m *Mesh) count(sent, unsent int) {
	m.mu.Lock()
	m.own.sent += uint64(sent)
	m.own.unsent += uint64(unsent)
	m.mu.Unlock()
}

// publish sends a message, or several with a part of the items each. What cannot be sent is lost, counted
// as unsent, and returned: facts, or 1 for a message without.
func (m *Mesh) publish(topic string, msg message, items []share) (lost int) {
	msg.Node = m.opts.Name
	room := m.room()
	if msg.Is != isFacts { // held facts that do not fit are counted when they are held
		items = slices.DeleteFunc(items, func(s share) bool { return len(s.data) >= room })
	}
	for more := true; more; {
		part, rest := cut(items, room)
		items, more = rest, len(rest) > 0
		if msg.Is == isList {
			msg.From, msg.Upto = msg.Upto, math.MaxUint64
			if more {
				msg.Upto = rest[0].id - 1
			}
		}
		if m.bus.Publish(m.subject(topic, m.table.run), encode(msg, part)) != nil {
			n := max(len(part), 1)
			m.count(0, n)
			lost += n
		}
	}
	return lost
}

// stamps measures time since a start. It never falls behind real time: the clock of the
// system may be set, and the monotonic clock may stand still while the machine sleeps.
type stamps struct {
	last    time.Time
	elapsed time.Duration
}

func (s *stamps) at(now time.Time) time.Duration {
	s.elapsed += max(0, now.Sub(s.last), now.Round(0).Sub(s.last.Round(0)))
	s.last = now
	return s.elapsed
}
