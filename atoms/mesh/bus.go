package mesh

import (
	"context"
	"fmt"
	"strings"
	"time"

	nats "github.com/nats-io/nats.go"
)

// bus is what a mesh needs of a connection: it carries messages between nodes. Messages of one
// connection arrive at a subscription in order; any may be lost.
type bus interface {
	Publish(subject string, data []byte) error
	Subscribe(pattern string, fn nats.MsgHandler) (*nats.Subscription, error)
	FlushWithContext(ctx context.Context) error
}

// settleTime bounds Join if its context has no end.
const settleTime = 10 * time.Second

// subject is the subject of a topic of this cluster.
func (m *Mesh) subject(topic, run string) string {
	return subjects + m.opts.Cluster + "." + topic + "." + run
}

// listen subscribes to the topics of the cluster, and waits until the server knows it.
func (m *Mesh) listen(ctx context.Context) error {
	for _, pattern := range []string{m.subject("all.*", "*"), m.subject(topicTo, m.table.run), m.subject(topicWake, "*")} {
		s, err := m.bus.Subscribe(pattern, m.hear)
		if err != nil {
			return fmt.Errorf("mesh: subscribe: %w", err)
		}
		m.cancels = append(m.cancels, func() { s.Unsubscribe() }) // an error means that the connection is closed
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := m.bus.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("mesh: no answer of NATS: %w", err)
	}
	return nil
}

// hear handles a message. It calls no handlers of signals, so they do not delay beats.
func (m *Mesh) hear(got *nats.Msg) {
	at := strings.LastIndexByte(got.Subject, '.')
	topic, run := got.Subject[len(subjects)+len(m.opts.Cluster)+1:at], got.Subject[at+1:]
	switch {
	case topic == topicTo:
		run = "" // of this node; that of the sender is in the message
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
		switch o := t.origins[msg.Run]; {
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
		m.publish(topicTo, run, message{Is: isNeed}, nil)
	}
}
