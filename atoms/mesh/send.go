package mesh

import (
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// send sends what there is.
func (m *Mesh) send() {
	for busy := true; busy; {
		m.mu.Lock()
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
func (m *Mesh) sendFacts(facts []core.Signal, now time.Time, sent time.Duration) {
	var all []share
	for _, f := range facts {
		if s := m.carriers.encode(f.Seq, f, now.Sub(f.Time)); s.data != nil {
			all = append(all, s)
		}
	}
	if len(all) > 0 {
		m.publish(topicFacts, message{Is: isFacts, Sent: sent}, all)
	}
	m.mu.Lock()
	m.own.sent += uint64(len(all))
	m.own.unsent += uint64(len(facts) - len(all))
	m.mu.Unlock()
}

// publish sends a message, or several with a part of the items each. If it fails, the message is
// lost, like others.
func (m *Mesh) publish(topic string, msg message, items []share) {
	msg.Node = m.opts.Name
	for more := true; more; {
		part, rest := cut(items)
		items, more = rest, len(rest) > 0
		if msg.Is == isList {
			msg.From, msg.Upto = msg.Upto, math.MaxUint64
			if more {
				msg.Upto = rest[0].id - 1
			}
		}
		m.bus.Publish(m.subject(topic, m.table.run), encode(msg, part))
	}
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
