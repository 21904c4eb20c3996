package volatile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	// If reports whether a signal that matches Pattern kills. nil means that all do. It is
	// called on the goroutine that raises the signal. If it panics, the signal does not
	// kill, and the sink counts the panic.
	If func(signals.Signal) bool
	// ByKey means that signals that are raised on the sink itself kill, too. They kill the
	// operation whose id, in decimal, is the key of the signal.
	ByKey bool
	// LetFinish means that no operation is cancelled. It runs to its end, and then it is
	// evicted.
	LetFinish bool
	// KeepPinned means that pinned operations are not killed. An operation that is pinned
	// when it finishes is not evicted. See [core.Control.Pin].
	KeepPinned bool
	// OnKilled is called when a killed operation has left the window. OnMissed is called
	// when the coordinator does not have the operation. They are called on the goroutine
	// that raised the signal or, if the operation was not finished, on a goroutine of the
	// evictor. No lock is held. [Stats] counts their panics.
	OnKilled, OnMissed func(core.OperationID, signals.Signal)
}

func (o Options) resolved(target Target) (Options, error) {
	if core.IsNil(target) {
		return o, errors.New("volatile: New needs a coordinator, not nil")
	}
	o.Pattern = cmp.Or(o.Pattern, "kill.*")
	return o, nil
}

// A Target is a [core.Coordinator], or another type with these methods. The Wait of a
// [core.ResultCoordinator] also returns a result: embed it in a type whose Wait returns only the
// error.
type Target interface {
	Name() string
	Sink() *signals.Sink
	Lookup(core.OperationID) (core.Snapshot, bool)
	Cancel(id core.OperationID, cause error) bool
	Evict(core.OperationID) bool
	Wait(context.Context, core.OperationID) error
}

// Stats are the counters of an [Evictor], read together. At every instant
//
//	Matched = Killed + Missed + Spared + Repeated + Abandoned + Underway
type Stats struct {
	Matched   uint64 `json:"matched"`   // signals that kill
	Killed    uint64 `json:"killed"`    // the operation has left the window
	Missed    uint64 `json:"missed"`    // the coordinator did not have the operation
	Spared    uint64 `json:"spared"`    // the operation was pinned, with KeepPinned
	Repeated  uint64 `json:"repeated"`  // an earlier signal was killing the operation already
	Abandoned uint64 `json:"abandoned"` // the operation was not finished at Close
	Underway  int    `json:"underway"`  // the operation is not finished yet
	Panics    uint64 `json:"panics"`    // panics of OnKilled and OnMissed
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// An Evictor evicts operations that raise certain signals. Make one with [New], and close it.
// All methods are safe for concurrent use, also in handlers, in the work and in callbacks.
//
// It costs a handler of the sink. An operation that is killed while it runs costs a goroutine
// until it is finished. With LetFinish, this is also true of an operation that waits to run.
type Evictor struct {
	target      Target
	opts        Options
	unsubscribe func()
	callbacks   *signals.Sink // calls OnKilled and OnMissed
	endCalls    func()
	ctx         context.Context // ends with Close
	stop        context.CancelFunc
	waiting     sync.WaitGroup // goroutines that wait for operations

	mu       sync.Mutex
	underway map[core.OperationID]struct{}
	stats    Stats
}

// calls is the kind of the signals on Evictor.callbacks. The payload is the function to
// call.
var calls = signals.NewKind[func()]("volatile.call")

// New makes an evictor for the operations of target. Until Close, it is subscribed to the sink
// of target. New returns an error if target is nil.
func New(target Target, opts Options) (*Evictor, error) {
	opts, err := opts.resolved(target)
	if err != nil {
		return nil, err
	}
	callbacks := signals.NewSink(signals.SinkOptions{Capacity: 1})
	e := &Evictor{target: target, opts: opts, callbacks: callbacks, underway: make(map[core.OperationID]struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.endCalls = calls.Subscribe(e.callbacks, func(_ signals.Signal, call func()) { call() })
	e.unsubscribe = target.Sink().Subscribe(opts.Pattern, e.handle)
	return e, nil
}

// Name is the name of the coordinator.
func (e *Evictor) Name() string { return e.target.Name() }

// Sink is the sink of the coordinator.
func (e *Evictor) Sink() *signals.Sink { return e.target.Sink() }

// Close ends the subscription. Killed operations that are not finished are not evicted any more.
// Close waits for callbacks that run, except inside a callback or a handler. After Close, no
// callback starts. It may be called several times, and returns nil.
func (e *Evictor) Close() error {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	e.unsubscribe()
	e.endCalls()
	e.waiting.Wait()
	return nil
}

// Stats returns the counters.
func (e *Evictor) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Underway, s.Panics = len(e.underway), e.callbacks.Stats().Panics
	return s
}

// handle is the handler of the signals that kill.
func (e *Evictor) handle(s signals.Signal) {
	id := s.Operation
	if id == 0 && e.opts.ByKey {
		n, _ := strconv.ParseUint(s.Key, 10, 64)
		id = core.OperationID(n)
	}
	own := s.Name == SignalKilled || s.Name == SignalMissed
	if id != 0 && !own && (e.opts.If == nil || e.opts.If(s)) && e.begin(id) {
		e.kill(id, s)
	}
}

// begin records that an operation is being killed. It returns false if that is recorded
// already.
func (e *Evictor) begin(id core.OperationID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return false
	}
	e.stats.Matched++
	_, repeated := e.underway[id]
	if repeated {
		e.stats.Repeated++
	}
	e.underway[id] = struct{}{}
	return !repeated
}

// kill evicts an operation, now or when it is finished. The call of end is deferred because
// handlers of the coordinator may end this goroutine.
func (e *Evictor) kill(id core.OperationID, s signals.Signal) {
	counter := &e.stats.Killed
	defer func() { e.end(id, s, counter) }()
	if e.isPinned(id) {
		counter = &e.stats.Spared
		return
	}
	if !e.opts.LetFinish {
		e.target.Cancel(id, ErrKilled)
	}
	if e.target.Evict(id) { // the operation was finished, or was pending before Cancel
		return
	}
	counter = &e.stats.Missed
	if _, known := e.target.Lookup(id); known {
		counter = e.await(id, s)
	}
}

// await starts a goroutine that evicts an operation when it is finished, and returns nil. If the
// evictor is closed, it returns the counter.
func (e *Evictor) await(id core.OperationID, s signals.Signal) *uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return &e.stats.Abandoned
	}
	e.waiting.Add(1)
	go func() {
		e.target.Wait(e.ctx, id)
		if e.ctx.Err() != nil {
			e.end(id, s, &e.stats.Abandoned)
			e.waiting.Done()
			return
		}
		e.waiting.Done() // Close does not wait for the rest, because it may call Close
		counter := &e.stats.Spared
		defer func() { e.end(id, s, counter) }()
		if !e.isPinned(id) {
			counter = &e.stats.Killed
			e.target.Evict(id) // unless it has left the window already
		}
	}()
	return nil
}

func (e *Evictor) isPinned(id core.OperationID) bool {
	if !e.opts.KeepPinned {
		return false
	}
	s, _ := e.target.Lookup(id)
	return s.Pins > 0
}

// end counts an operation that is no longer underway, raises the signal and calls the callback.
// If counter is nil, the operation is still underway, and end does nothing.
func (e *Evictor) end(id core.OperationID, s signals.Signal, counter *uint64) {
	if counter == nil {
		return
	}
	e.mu.Lock()
	*counter++
	delete(e.underway, id)
	e.mu.Unlock()
	switch counter {
	case &e.stats.Killed:
		e.report(SignalKilled, e.opts.OnKilled, id, s)
	case &e.stats.Missed:
		e.report(SignalMissed, e.opts.OnMissed, id, s)
	}
}

func (e *Evictor) report(signal string, callback func(core.OperationID, signals.Signal), id core.OperationID, s signals.Signal) {
	e.target.Sink().Because(s).RaiseKey(signal, id.String())
	if callback != nil {
		calls.Raise(e.callbacks, "", func() { callback(id, s) })
	}
}
