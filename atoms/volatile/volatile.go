package volatile

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ErrKilled is the cause with which killed operations are cancelled.
var ErrKilled = errors.New("volatile: operation was killed by a signal")

// Signals of an [Evictor], on the sink of the coordinator. The key is the id of the operation.
// The cause is the signal that killed it. These two signals never kill.
const (
	// SignalKilled: an operation was killed and has left the window.
	SignalKilled = "volatile.killed"
	// SignalMissed: the coordinator does not have the operation, or no longer has it.
	SignalMissed = "volatile.missed"
)

// Options configure an [Evictor]. The zero value is the default.
type Options struct {
	// Pattern matches the signals that kill. "" means "kill.*". See [signals.Match].
	//
	//ephemeral:pattern
	Pattern string
	// ByKey means that signals that are raised on the sink itself kill, too. They kill the
	// operation whose id, in decimal, is the key of the signal.
	ByKey bool
}

func (o Options) resolved() Options {
	o.Pattern = cmp.Or(o.Pattern, "kill.*")
	return o
}

// An Evictor evicts operations that raise certain signals. Make one with [New], and close it.
// All methods are safe for concurrent use, also in handlers and in the work.
//
// It costs a handler of the sink. An operation that is killed while it runs costs a goroutine
// until it is finished.
type Evictor struct {
	of          core.Control
	wait        func(context.Context, core.OperationID) error
	opts        Options
	unsubscribe func()
	ctx         context.Context // ends with Close
	stop        context.CancelFunc
	waiting     sync.WaitGroup // goroutines that wait for operations

	mu       sync.Mutex
	underway map[core.OperationID]struct{}
}

// New makes an evictor for the operations of c. Until Close, it is subscribed to the sink of c.
// New returns an error if c is nil.
func New[T any](c *core.Coordinator[T], opts Options) (*Evictor, error) {
	if c == nil {
		return nil, errors.New("volatile: New needs a coordinator, not nil")
	}
	opts = opts.resolved()
	e := &Evictor{of: c.Control, wait: c.Wait, opts: opts, underway: make(map[core.OperationID]struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.unsubscribe = c.Sink().Subscribe(opts.Pattern, e.handle)
	return e, nil
}

// Close ends the subscription. Killed operations that are not finished are not evicted any more.
// It may be called several times, and returns nil.
func (e *Evictor) Close() error {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	e.unsubscribe()
	e.waiting.Wait()
	return nil
}

// handle is the handler of the signals that kill.
func (e *Evictor) handle(s signals.Signal) {
	id := s.Operation
	if id == 0 && e.opts.ByKey {
		n, _ := strconv.ParseUint(s.Key, 10, 64)
		id = core.OperationID(n)
	}
	own := s.Name == SignalKilled || s.Name == SignalMissed
	if id != 0 && !own && e.begin(id) {
		e.kill(id, s)
	}
}

// begin records that an operation is being killed. It returns false if that is recorded
// already.
func (e *Evictor) begin(id core.OperationID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, repeated := e.underway[id]; repeated || e.ctx.Err() != nil {
		return false
	}
	e.underway[id] = struct{}{}
	return true
}

// kill evicts an operation, now or when it is finished. The call of end is deferred because
// handlers of the coordinator may end this goroutine.
func (e *Evictor) kill(id core.OperationID, s signals.Signal) {
	outcome := SignalKilled
	defer func() { e.end(id, s, outcome) }()
	e.of.Cancel(id, ErrKilled)
	if e.of.Evict(id) { // the operation was finished, or was pending before Cancel
		return
	}
	outcome = SignalMissed
	if _, known := e.of.Lookup(id); known {
		outcome = ""
		e.await(id, s)
	}
}

// await starts a goroutine that evicts an operation when it is finished.
func (e *Evictor) await(id core.OperationID, s signals.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return
	}
	e.waiting.Add(1)
	go func() {
		_ = e.wait(e.ctx, id)
		closed := e.ctx.Err() != nil
		e.waiting.Done() // Close does not wait for the rest, because a handler may call Close
		if !closed {
			defer e.end(id, s, SignalKilled)
			e.of.Evict(id) // unless it has left the window already
		}
	}()
}

// end raises the outcome of an operation. If there is none, the operation is still underway.
func (e *Evictor) end(id core.OperationID, s signals.Signal, outcome string) {
	if outcome == "" {
		return
	}
	e.mu.Lock()
	delete(e.underway, id)
	e.mu.Unlock()
	e.of.Sink().Because(s).RaiseKey(outcome, id.String())
}
