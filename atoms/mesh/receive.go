package mesh

import (
	"context"
	"fmt"
	"strings"
	"time"

	nats "github.com/nats-io/nats.go"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// bus is what a mesh needs of a connection: it carries messages between nodes. Messages of one
// connection arrive at a subscription in order; any may be lost.
type bus interface {
	Publish(subject string, data []byte) error
	Subscribe(pattern string, fn nats.MsgHandler) (*nats.Subscription, error)
	FlushWithContext(ctx context.Context) error
	MaxPayload() int64 // that the server permits now
	LastError() error  // that the server has reported
}

// subject is the subject of a topic of this cluster.
func (m *Mesh) subject(topic, run string) string {
	return subjects + m.opts.Cluster + "." + topic + "." + run
}

// listen subscribes to the topics of the cluster, and waits until the server knows it.
func (m *Mesh) listen(ctx context.Context) error {
	before := m.bus.LastError()
	m.denial = before
	for _, pattern := range []string{m.subject("all.*", "*"), m.subject(topicTo+m.table.run, "*"), m.subject(topicWake, "*")} {
		s, err := m.bus.Subscribe(pattern, m.hear)
		if err != nil {
			return fmt.Errorf("mesh: subscribe: %w", err)
		}
		m.cancels = append(m.cancels, func() { s.Unsubscribe() }) // an error means that the connection is closed
	}
	m.publish(topicState, message{Is: isHeld, Sent: m.now()}, nil) // nothing: whether this node may
	m.publish(topicFacts, message{Is: isFacts, Sent: m.now()}, nil)
	m.publish(topicTo+m.table.run, message{Is: isAck}, nil)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := m.bus.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("mesh: no answer of NATS: %w", err)
	}
	if err := m.denied(before); err != nil {
		return fmt.Errorf("mesh: the user of the connection may not publish or subscribe: %w", err)
	}
	if most := m.bus.MaxPayload(); most < maxHead+1<<10 {
		return fmt.Errorf("mesh: max_payload of the server is %d bytes, but must be at least %d", most, maxHead+1<<10)
	}
	return nil
}

// denied returns what the server has denied this node, if that is another error than before, or nil.
func (m *Mesh) denied(before error) error {
	err := m.bus.LastError()
	if err == before || !guard.Is(err, nats.ErrPermissionViolation) || !strings.Contains(guard.Text(err), subjects+m.opts.Cluster+".") {
		return nil
	}
	return err
}

// hear handles a message. It calls no handlers of signals, so they do not delay beats.
func (m *Mesh) hear(got *nats.Msg) {
	at := strings.LastIndexByte(got.Subject, '.')
	topic, run := got.Subject[len(subjects)+len(m.opts.Cluster)+1:at], got.Subject[at+1:]
	switch {
	case run == m.table.run:
		return
	case topic == topicWake:
		m.wakeHere(string(got.Data))
		return
	case topic == topicFacts:
		m.facts.TryEnqueue(context.Background(), func() { m.raise(decode(got.Data, run)) })
		return
	}
	msg, need := decode(got.Data, run), false
	m.do(func() {
		t := m.table
		switch o := t.origins[run]; {
		case topic == topicState:
			need = t.state(m.now(), msg)
		case msg.Is == isNeed:
			m.own.list = true
		case msg.Is == isAck && o != nil:
			o.acked = msg
		default:
			t.refused++
		}
	})
	if need {
		m.publish(topicTo+run, message{Is: isNeed}, nil)
	}
}

// maxArrivals is how many messages with raised facts of other nodes may wait while a handler
// runs: at most 16 MB. What comes beyond is lost and counted as missed.
const maxArrivals = 256

// raise raises the facts of a message here, or handles a beat behind them.
func (m *Mesh) raise(msg *message) {
	var o *origin
	m.do(func() { o = m.table.arrive(m.now(), msg) })
	for i := range msg.Items {
		m.mu.Lock()
		ok := o != nil && m.table.admit(m.now(), o, &msg.Items[i], msg.Sent)
		m.mu.Unlock()
		if ok {
			m.record(&msg.Items[i], o.name, 1)
		}
	}
	if o == nil || msg.Is != isBeat {
		return
	}
	m.mu.Lock()
	m.table.pass(o, msg.Last)
	missed, lost := o.Missed-o.told, o.lost()
	o.told = o.Missed
	m.mu.Unlock()
	if missed > 0 {
		Missed.Raise(m.sink, o.name, missed)
	}
	if msg.Ask > 0 {
		m.publish(topicTo+o.run, message{Is: isAck, Ask: msg.Ask, Lost: lost}, nil)
	}
}

// now is the time of the table.
func (m *Mesh) now() time.Duration { return time.Since(m.start) }

// record raises a fact of another node, or holds it. Raised is what it counts as raised: 1 or 0.
func (m *Mesh) record(it *item, node string, raised uint64) (release func()) {
	s, ok := m.carriers.signal(it, raised == 0)
	if ok {
		release, ok = m.sink.Import(s, node)
	}
	if !ok {
		m.mu.Lock()
		m.table.refused++
		m.table.raised -= raised
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
			m.facts.TryEnqueue(context.Background(), func() { m.raise(e.beat) })
		case e.unsent > 0:
			Unsent.Raise(m.sink, m.opts.Name, e.unsent)
		case e.lost != "":
			m.sink.RaiseKey(SignalLost, e.lost)
		case h == nil && e.ends.release != nil:
			e.ends.release()
		case h != nil && h.node == "":
			h.release = m.sink.Hold(h.item.Name, h.item.Key, 0)
		case h != nil:
			h.release = m.record(h.item, h.node, 0)
		}
	}
}
