package mesh

import (
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
	// SignalMissed is raised when signals of a node have not arrived, at most once for each beat.
	// The key is its name, the payload how many.
	SignalMissed = "mesh.missed"
)

// Missed is the kind of [SignalMissed].
var Missed = core.NewKind[uint64](SignalMissed)

// A Mesh is this node. Make one with [Join], and close it. All methods are safe for concurrent
// use. It has goroutines while there is something to send or to raise, and those of the
// connection.
type Mesh struct {
	opts     Options
	bus      bus
	sink     *core.Sink
	carriers carriers
	start    time.Time
	clock    func() time.Time // of the system; tests set it
	stamps   stamps           // of the sender
	ids      atomic.Uint64    // of held facts
	cancels  []func()
	wakers   sync.Map // set of *waker

	sender  runner // sends what own has
	effects runner // performs what table wants
	facts   *core.Coordinator[arrival]

	mu               sync.Mutex
	own              own
	table            *table
	alarm            *time.Timer
	beatAt           int64
	alone, duplicate hold
	closed           bool
	closing          sync.Once
	done             chan struct{} // closed by Close
}

// Join makes this process a node of a cluster. What is raised or held on sink and matches
// [Options].Share is raised and held on the sinks of all nodes; what is held already, too.
// Join does not wait for other nodes. It returns an error if an option is wrong, and if the
// connection does not answer until ctx ends, or within 10 seconds. After that, conn may
// lose its server and find it again; it stays the caller's, who closes it after Close.
func Join(ctx context.Context, conn *nats.Conn, sink *core.Sink, opts Options) (*Mesh, error) {
	if conn == nil {
		return nil, errors.New("mesh: Join needs a connection, not nil")
	}
	return join(ctx, conn, sink, opts, time.Now)
}

func join(ctx context.Context, b bus, sink *core.Sink, opts Options, clock func() time.Time) (*Mesh, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	if sink == nil {
		return nil, errors.New("mesh: Join needs a sink, not nil")
	}
	carry, err := newCarriers(opts.Carry)
	if err != nil {
		return nil, err
	}
	now := clock()
	m := &Mesh{
		opts: opts, bus: b, sink: sink, carriers: carry, start: time.Now(), clock: clock, stamps: stamps{last: now}, done: make(chan struct{}),
		own: own{holds: map[uint64]share{}, asks: map[*ask]bool{}},
		table: &table{
			run: fmt.Sprintf("%016x%s", now.UnixNano(), rand.Text()), name: opts.Name, lease: int64(opts.Lease), maxLate: int64(opts.MaxLate), maxRate: opts.MaxRate,
			accepts: func(name string) bool { return mayTravel(opts.Accept, name) },
			origins: map[string]*origin{}, counted: map[string]*origin{},
		},
		alone:     hold{item: &item{Name: SignalAlone, Key: opts.Name}},
		duplicate: hold{item: &item{Name: SignalDuplicate, Key: opts.Name}},
	}
	m.sender, m.effects = newRunner("mesh.sender", m.send), newRunner("mesh.effects", m.perform)
	m.facts = core.Must(core.NewCoordinator(m.raise, quiet("mesh.facts", maxArrivals)))
	m.alarm = time.AfterFunc(math.MaxInt64, m.tick)
	if err := m.listen(ctx); err != nil {
		m.Close()
		return nil, err
	}
	m.cancels = append(m.cancels, sink.Relay(opts.Share, m.relay))
	m.tick()
	if err := m.effects.c.Flush(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Name is [Options].Name.
func (m *Mesh) Name() string { return m.opts.Name }

// Sink is the sink that was given to [Join].
func (m *Mesh) Sink() *core.Sink { return m.sink }

// relay queues a fact of this node.
func (m *Mesh) relay(s core.Signal, lease time.Duration) (ended func()) {
	if !mayTravel(m.opts.Share, s.Name) {
		return nil
	}
	if !s.Held {
		m.mu.Lock()
		m.own.raise(s, m.opts.MaxQueued)
		m.mu.Unlock()
		m.sender.wake()
		return nil
	}
	sh, ok := m.carriers.encode(m.ids.Add(1), s, 0)
	m.mu.Lock()
	if ok {
		m.own.hold(sh)
	} else {
		m.own.unsent++
	}
	m.unlock()
	ended = func() {
		m.mu.Lock()
		m.own.release(sh.id)
		m.unlock()
	}
	if lease > 0 { // its end is not told
		timer := time.AfterFunc(lease, ended)
		return func() {
			timer.Stop()
			ended()
		}
	}
	return ended
}

// now is the time of the table.
func (m *Mesh) now() int64 { return int64(time.Since(m.start)) }

// tick runs when the alarm rings: leases have ended, or a beat is due.
func (m *Mesh) tick() {
	m.mu.Lock()
	m.unlock()
}

// unlock does what is due, unlocks, and lets the rest be sent and performed.
func (m *Mesh) unlock() {
	now, t := m.now(), m.table
	next := t.expire(now)
	if now >= m.beatAt || t.greet {
		t.greet, m.own.beat, m.beatAt = false, true, now+t.lease/4
	}
	m.own.settle(t)
	t.be(&m.alone, !m.closed && len(t.counted)+1 < m.opts.MinNodes)
	t.be(&m.duplicate, !m.closed && t.counted[t.name] != nil)
	if !m.closed {
		m.alarm.Reset(time.Duration(min(next, m.beatAt) - now))
	}
	busy, wanted := m.own.busy(), len(t.effects) > 0
	m.mu.Unlock()
	if busy {
		m.sender.wake()
	}
	if wanted {
		m.effects.wake()
	}
}

// Close leaves the cluster: what this node holds ends on all nodes, and what other nodes hold
// ends here. What was raised before is sent. Close may be called many times; it returns nil. It
// waits for handlers of sink that were called for signals of other nodes, but not inside one.
func (m *Mesh) Close() error {
	m.closing.Do(func() {
		for _, cancel := range m.cancels {
			cancel()
		}
		m.mu.Lock()
		m.closed = true
		m.alarm.Stop()
		for _, o := range m.table.counted {
			m.table.silence(o)
		}
		m.unlock()
		close(m.done)
		m.sender.c.Close()
		m.send()
		m.publish(topicState, m.table.run, message{Is: isLeave}, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		m.bus.FlushWithContext(ctx) // if it fails, the others notice after Lease
	})
	m.facts.Close()
	m.effects.c.Drain(context.Background())
	return nil
}

// runner runs a function in the background after each wake, once for several wakes.
type runner struct {
	c     *core.Coordinator[struct{}]
	awake *atomic.Bool
}

func newRunner(name string, fn func()) runner {
	awake := new(atomic.Bool)
	return runner{core.Must(core.NewCoordinator(func(context.Context, struct{}) error {
		awake.Store(false)
		fn()
		return nil
	}, quiet(name, 1))), awake}
}

func (r runner) wake() {
	if !r.awake.Swap(true) {
		r.c.TryEnqueue(context.Background(), struct{}{}) // it is refused only after Close
	}
}

// quiet are the options of a coordinator that remembers nothing.
func quiet(name string, maxQueued int) core.Options {
	return core.Options{Name: name, MaxConcurrency: 1, MaxQueued: maxQueued, MaxTracked: -1, MaxFailed: -1, EchoCapacity: -1}
}
