package mesh

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	nats "github.com/nats-io/nats.go"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a mesh, on its sink. They do not travel.
const (
	// SignalAlone is held while fewer than [Options.MinNodes] nodes are heard. The key is the
	// name of this node.
	SignalAlone = "mesh.alone"
	// SignalDuplicate is held while a node of the same name is heard that has started later:
	// the other nodes ignore this one. The key is the name.
	SignalDuplicate = "mesh.duplicate"
	// SignalLost is raised when a node has been silent for Lease. The key is its name.
	SignalLost = "mesh.lost"
)

// Missed is raised when signals of a node have not arrived, at most once for each beat. The key
// is its name, the payload how many.
var Missed = signals.NewKind[uint64]("mesh.missed")

// Unsent is raised when [Stats].Unsent has grown: signals of this node, or its beats, cannot be
// sent. It is raised at most once for each beat. The key is the name of this node, the payload
// how many.
var Unsent = signals.NewKind[uint64]("mesh.unsent")

// A Mesh is this node. Make one with [Join], and close it. All methods are safe for concurrent
// use. It has goroutines while there is something to send or to raise, and those of the
// connection.
type Mesh struct {
	opts     Options
	bus      bus
	sink     *signals.Sink
	carriers carriers
	start    time.Time
	stamps   stamps        // of the sender
	ids      atomic.Uint64 // of held facts
	cancels  []func()
	wakers   sync.Map // names of queues by pointers to functions
	denial   error    // the last that was known; of the sender

	// What they run: send, perform, and raise or pass.
	sender, effects, facts *core.Coordinator[func()]

	mu      sync.Mutex
	own     own
	table   *table
	alarm   *time.Timer
	closing sync.Once
	done    chan struct{} // closed by Close
}

// Join makes this process a node of a cluster. Join a cluster once for each sink: two nodes on one
// sink both send what is raised there. What is raised or held on sink and matches
// [Options].Share is raised and held on the sinks of all nodes; what is held already, too.
// Join does not wait for other nodes. It returns an error if an option is wrong, if the
// connection does not answer until ctx ends, or within 10 seconds, if the user of conn may not publish
// and subscribe ([nats.ErrPermissionViolation]), and if max_payload of the server is below 3 kB. After that, conn may
// lose its server and find it again; it stays the caller's, who closes it after Close.
func Join(ctx context.Context, conn *nats.Conn, sink *signals.Sink, opts Options) (*Mesh, error) {
	if conn == nil || sink == nil {
		return nil, errors.New("mesh: Join needs a connection and a sink, not nil")
	}
	return join(ctx, conn, sink, opts)
}

func join(ctx context.Context, b bus, sink *signals.Sink, opts Options) (*Mesh, error) {
	opts, err := opts.resolved()
	carry, wrong := newCarriers(opts.Carry)
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	now := time.Now()
	m := &Mesh{
		opts: opts, bus: b, sink: sink, carriers: carry, start: now, stamps: stamps{last: now}, done: make(chan struct{}),
		own: own{holds: map[uint64]share{}, large: map[uint64]share{}, room: maxItems, asks: map[*ask]bool{}},
		table: &table{
			opts: opts, run: fmt.Sprintf("%016x%s", now.UnixNano(), rand.Text()),
			origins: map[string]*origin{}, counted: map[string]*origin{}, self: &origin{holds: map[uint64]*hold{}},
		},
		sender: background("mesh.sender", 1), effects: background("mesh.effects", 1), facts: background("mesh.facts", maxArrivals),
	}
	m.alarm = time.AfterFunc(math.MaxInt64, func() { m.do(func() {}) })
	if err = m.listen(ctx); err == nil {
		m.cancels = append(m.cancels, sink.Relay(opts.Share, m.relay))
		m.do(func() {})
		err = m.effects.Flush(ctx)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// relay queues a fact of this node.
func (m *Mesh) relay(s signals.Signal, lease time.Duration) (ended func()) {
	switch {
	case !mayTravel(m.opts.Share, s.Name):
		return nil
	case !s.Held:
		m.mu.Lock()
		idle := !m.own.busy()
		m.own.raise(s, m.opts.MaxQueued)
		m.mu.Unlock()
		if idle {
			m.sender.TryEnqueue(context.Background(), m.send)
		}
		return nil
	}
	sh := m.carriers.encode(m.ids.Add(1), s, 0)
	m.do(func() { m.own.hold(sh) })
	end := func() { m.do(func() { m.own.release(sh.id) }) }
	if lease == 0 {
		return end
	}
	timer := time.AfterFunc(lease, end) // a relay is not told
	return func() {
		timer.Stop()
		end()
	}
}

// do takes a step under the lock, and does what is due. Then it lets the rest be sent and performed.
func (m *Mesh) do(step func()) {
	m.mu.Lock()
	step()
	now, t := m.now(), m.table
	if !t.closed {
		if now >= t.beatAt {
			m.own.beat, t.beatAt = true, now+m.opts.Lease/4
			if n := m.own.unsent - m.own.told; n > 0 && len(t.effects) < maxEffects {
				m.own.told = m.own.unsent
				t.effects = append(t.effects, effect{unsent: n})
			}
		}
		m.alarm.Reset(t.expire(now) - now)
		t.say(1, SignalAlone, len(t.counted)+1 < m.opts.MinNodes)
		t.say(2, SignalDuplicate, t.counted[m.opts.Name] != nil)
		m.own.settle(t)
	}
	busy, wanted := m.own.busy(), len(t.effects) > 0
	m.mu.Unlock()
	if busy {
		m.sender.TryEnqueue(context.Background(), m.send) // if one waits already, that is enough
	}
	if wanted {
		m.effects.TryEnqueue(context.Background(), m.perform)
	}
}

// Close leaves the cluster: what this node holds ends on all nodes, and what other nodes hold
// ends here. What was raised before is sent, and other nodes raise it. Close may be called many
// times; it returns nil. It waits for payloads that are encoded, and for handlers of sink that were
// called for signals of other nodes, but not inside one.
func (m *Mesh) Close() error {
	m.closing.Do(func() {
		for _, cancel := range m.cancels {
			cancel()
		}
		m.do(func() {
			m.table.close()
			m.own.leave = true
		})
		m.alarm.Stop()
		close(m.done)
		m.sender.Drain(context.Background()) // Close would not wait in a handler
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		m.bus.FlushWithContext(ctx) // if it fails, the others notice after Lease
	})
	m.facts.Close()
	m.effects.Complete()
	if ctx := context.Background(); !m.facts.Inside(ctx) {
		m.effects.Flush(ctx)
	}
	return nil
}

// background runs functions, one after the other, and remembers nothing.
func background(name string, maxQueued int) *core.Coordinator[func()] {
	return core.Must(core.NewCoordinator(func(_ context.Context, fn func()) error {
		fn()
		return nil
	}, core.Options{Name: name, MaxConcurrency: 1, MaxQueued: maxQueued, MaxTracked: -1, MaxFailed: -1, EchoCapacity: -1}))
}
