package mesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	nats "github.com/nats-io/nats.go"
)

// bus carries messages between nodes. Messages of one publisher on one subject arrive in
// order; any may be lost.
type bus interface {
	publish(subject string, data []byte) error
	// subscribe calls fn, which does not block, for the messages whose subject matches. The last
	// part of pattern may be "*". Cancel does not wait.
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
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, errors.New("mesh: no answer of NATS within 10s"))
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("mesh: NATS: %w", err)
	}
	return nil
}

// subject is the subject of a topic of this cluster.
func (m *Mesh) subject(topic, run string) string {
	return subjects + m.opts.Cluster + "." + topic + "." + run
}

// listen subscribes to the topics of the cluster.
func (m *Mesh) listen() error {
	for _, t := range []struct {
		topic, runs string
		fn          func(run string, data []byte)
	}{
		{topicState, "*", m.onState},
		{topicFacts, "*", m.onFacts},
		{topicWake, "*", m.onWake},
		{topicTo, m.table.run, m.onAnswer},
	} {
		cancel, err := m.bus.subscribe(m.subject(t.topic, t.runs), func(subject string, data []byte) {
			run := subject[strings.LastIndexByte(subject, '.')+1:]
			if t.runs == "*" && run == m.table.run {
				return // of this node
			}
			t.fn(run, data)
		})
		if err != nil {
			return err
		}
		m.cancels = append(m.cancels, cancel)
	}
	return nil
}
