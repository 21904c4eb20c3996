package mesh

import (
	"context"
	"fmt"
	"strings"
	"time"

	nats "github.com/nats-io/nats.go"
)

// bus carries messages between nodes. Messages of one publisher arrive at one subscriber in
// order; any may be lost.
type bus interface {
	publish(subject string, data []byte) error
	// subscribe calls fn, which does not block, for the messages whose subject matches. The last
	// parts of pattern may be "*". Cancel does not wait.
	subscribe(pattern string, fn func(subject string, data []byte)) (cancel func(), err error)
	// settle returns when the subscriptions, and what was published so far, have reached the bus.
	settle(ctx context.Context) error
}

// natsBus is a bus of NATS.
type natsBus struct{ conn *nats.Conn }

func (b natsBus) publish(subject string, data []byte) error { return b.conn.Publish(subject, data) }

func (b natsBus) subscribe(pattern string, fn func(string, []byte)) (func(), error) {
	sub, err := b.conn.Subscribe(pattern, func(m *nats.Msg) { fn(m.Subject, m.Data) })
	if err != nil {
		return nil, fmt.Errorf("mesh: subscribe: %w", err)
	}
	return func() { sub.Unsubscribe() }, nil // an error means that the connection is closed
}

// settleTime bounds settle if the context has no end.
const settleTime = 10 * time.Second

func (b natsBus) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("mesh: no answer of NATS: %w", err)
	}
	return nil
}

// subject is the subject of a topic of this cluster.
func (m *Mesh) subject(topic, run string) string {
	return subjects + m.opts.Cluster + "." + topic + "." + run
}

// listen subscribes to the topics of the cluster.
func (m *Mesh) listen() error {
	for pattern, fn := range map[string]func(topic, run string, data []byte){
		m.subject("all.*", "*"):         m.hear,
		m.subject(topicTo, m.table.run): m.hear,
		m.subject(topicWake, "*"):       func(_, _ string, data []byte) { m.wakeHere(string(data)) },
	} {
		cancel, err := m.bus.subscribe(pattern, func(subject string, data []byte) {
			at := strings.LastIndexByte(subject, '.')
			topic, run := subject[len(m.subject("", ""))-1:at], subject[at+1:]
			if topic == topicTo || run != m.table.run { // else it is of this node
				fn(topic, run, data)
			}
		})
		if err != nil {
			return err
		}
		m.cancels = append(m.cancels, cancel)
	}
	return nil
}
