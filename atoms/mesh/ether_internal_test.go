package mesh

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	latency = time.Millisecond // of the ether
	lease   = time.Second
)

// ether is what the buses of a test have in common. It has a connection for each node.
type ether struct {
	t    *testing.T
	mu   sync.Mutex
	subs []*subscriber
	lose func(from, to, subject string, data []byte) bool // or nil: nothing is lost
	cut  map[string]bool                                  // messages from and to these nodes wait
	late []func()                                         // those messages
	done chan struct{}
}

type subscriber struct {
	node, pattern string
	fn            nats.MsgHandler
	queue         chan delivery
}

type delivery struct {
	at time.Time
	fn func()
}

// inEther runs a test in a bubble. All meshes are closed at its end.
func inEther(t *testing.T, fn func(t *testing.T, e *ether)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &ether{t: t, cut: map[string]bool{}, done: make(chan struct{})}
		defer func() {
			close(e.done)
			time.Sleep(2 * latency)
		}()
		fn(t, e)
	})
}

// wire is the connection of a node.
type wire struct {
	*ether
	node string
}

func (w wire) Publish(subject string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	data = slices.Clone(data)
	for _, s := range w.subs {
		if ok, _ := path.Match(s.pattern, subject); !ok || w.lose != nil && w.lose(w.node, s.node, subject, data) {
			continue
		}
		deliver := func() {
			s.queue <- delivery{time.Now().Add(latency), func() { s.fn(&nats.Msg{Subject: subject, Data: data}) }}
		}
		if s.node != w.node && (w.cut[w.node] || w.cut[s.node]) {
			w.late = append(w.late, deliver)
		} else {
			deliver()
		}
	}
	return nil
}

func (w wire) Subscribe(pattern string, fn nats.MsgHandler) (*nats.Subscription, error) {
	s := &subscriber{w.node, pattern, fn, make(chan delivery, 100_000)}
	w.mu.Lock()
	w.subs = append(w.subs, s)
	w.mu.Unlock()
	go func() {
		for {
			select {
			case d := <-s.queue:
				// Not time.After: if it is due at once, the race detector may crash; see https://go.dev/issue/78156.
				time.Sleep(time.Until(d.at))
				select {
				case <-w.done:
				default:
					d.fn()
				}
			case <-w.done:
				return
			}
		}
	}()
	return new(nats.Subscription), nil // it goes on after Unsubscribe, as a message that is on its way
}

func (w wire) FlushWithContext(context.Context) error { return nil }
func (w wire) MaxPayload() int64                      { return 1 << 20 }
func (w wire) LastError() error                       { return nil }

// next is the connection of a program with the next version of the protocol.
type next struct{ wire }

func (n next) Publish(subject string, data []byte) error {
	return n.wire.Publish(strings.Replace(subject, ".v1.", ".v2.", 1), data)
}

func (n next) Subscribe(pattern string, fn nats.MsgHandler) (*nats.Subscription, error) {
	return n.wire.Subscribe(strings.Replace(pattern, ".v1.", ".v2.", 1), func(m *nats.Msg) {
		fn(&nats.Msg{Subject: strings.Replace(m.Subject, ".v2.", ".v1.", 1), Data: m.Data})
	})
}

// cutOff cuts nodes off. What they send and what is sent to them waits.
func (e *ether) cutOff(nodes ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range nodes {
		e.cut[n] = true
	}
}

// heal delivers all that has waited.
func (e *ether) heal() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut = map[string]bool{}
	for _, deliver := range e.late {
		deliver()
	}
	e.late = nil
}

// losing loses messages from now on; nil: none.
func (e *ether) losing(lose func(from, to, subject string, data []byte) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lose = lose
}

// node is a mesh with the signals that came from others.
type node struct {
	*Mesh
	sink *signals.Sink
	mu   sync.Mutex
	got  []signals.Signal
}

// join makes a node that shares "a.*".
func (e *ether) join(name string, opts Options) *node {
	e.t.Helper()
	n := &node{sink: signals.NewSink(signals.SinkOptions{Capacity: 100_000})}
	n.sink.Subscribe("*", func(s signals.Signal) {
		if s.Node != "" {
			n.mu.Lock()
			n.got = append(n.got, s)
			n.mu.Unlock()
		}
	})
	n.Mesh = e.joinOn(n.sink, name, opts)
	return n
}

func (e *ether) joinOn(sink *signals.Sink, name string, opts Options) *Mesh {
	e.t.Helper()
	opts.Cluster, opts.Name, opts.Lease = "test", name, lease
	if opts.Share == "" {
		opts.Share = "a.*"
	}
	m, err := join(e.t.Context(), wire{e, name}, sink, opts)
	require.NoError(e.t, err)
	return m
}

// take returns the names and keys of what came since the last take.
func (n *node) take() (names []string) {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.got {
		names = append(names, s.Name+":"+s.Key)
	}
	n.got = nil
	return names
}

// settle waits until messages, and the answers to them, have come.
func settle() {
	time.Sleep(20 * latency)
	synctest.Wait()
}

func closeAll(nodes ...*node) {
	for _, n := range nodes {
		n.Close()
	}
}
