package mesh

import (
	"math"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// send sends what there is.
func (m *Mesh) send() {
	for busy := true; busy; {
		m.mu.Lock()
		busy = m.own.busy()
		p, list, beat := m.own.take()
		m.mu.Unlock()
		m.sendHeld(&p, list)
		m.sendFacts(p.facts)
		if beat.Is != "" {
			m.publish(topicState, m.table.run, beat, nil)
		}
		for _, queue := range p.wakes {
			m.bus.Publish(m.subject(topicWake, m.table.run), []byte(queue))
		}
	}
}

// sendHeld sends what has changed about held facts, and their list if somebody needs it.
func (m *Mesh) sendHeld(p *pending, list []share) {
	for _, part := range parts(p.fresh) {
		m.publish(topicState, m.table.run, message{Is: isHeld}, part)
	}
	for ended := range slices.Chunk(p.ended, maxBatch) { // facts may have been held for a moment
		m.publish(topicState, m.table.run, message{Is: isHeld, Ended: ended}, nil)
	}
	if !p.list {
		return
	}
	var from uint64
	for _, part := range parts(list) {
		upto := part[len(part)-1].id
		m.publish(topicState, m.table.run, message{Is: isHeld, From: from, Upto: upto}, part)
		from = upto
	}
	m.publish(topicState, m.table.run, message{Is: isHeld, From: from, Upto: math.MaxUint64}, nil)
}

// sendFacts sends raised facts.
func (m *Mesh) sendFacts(facts []core.Signal) {
	var all []share
	for _, f := range facts {
		if s := m.carriers.encode(f.Seq, f, int64(time.Since(f.Time))); s.data != nil {
			all = append(all, s)
		}
	}
	for _, part := range parts(all) {
		m.publish(topicFacts, m.table.run, message{Is: isFacts}, part)
	}
	m.mu.Lock()
	m.own.sent += uint64(len(all))
	m.own.unsent += uint64(len(facts) - len(all))
	m.mu.Unlock()
}

// publish sends a message. If it fails, the message is lost, like others.
func (m *Mesh) publish(topic, run string, msg message, items []share) {
	if msg.Node = m.opts.Name; topic == topicTo {
		msg.Run = m.table.run
	} else {
		msg.Sent = m.stamps.at(time.Now())
	}
	m.bus.Publish(m.subject(topic, run), encode(msg, items))
}

// stamps measures time since a start. It never falls behind real time: the clock of the
// system may be set, and the monotonic clock may stand still while the machine sleeps.
type stamps struct {
	last    time.Time
	elapsed int64
}

func (s *stamps) at(now time.Time) int64 {
	wall := now.Round(0).Sub(s.last.Round(0))
	s.elapsed += int64(max(0, now.Sub(s.last), wall))
	s.last = now
	return s.elapsed
}
