package volatile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrKilled is the cause with which an operation that is killed is cancelled.
var ErrKilled = errors.New("volatile: operation was killed by a signal")

// Signals that an evictor raises on the sink of the coordinator, with the id of the
// operation as key, caused by the signal that killed. They kill nothing themselves,
// whatever the pattern.
const (
	// SignalKilled: an operation was killed and has left the window.
	SignalKilled = "volatile.killed"
	// SignalMissed: the coordinator does not know the operation, or not any more.
	SignalMissed = "volatile.missed"
)

// Options configure an [Evictor]. The zero value is the default.
type Options struct {
	// Pattern matches the signals that kill; "" means "kill.*". See [core.Match].
	Pattern string
	// If, if it is set, has to agree as well. It is called on the goroutine that
	// raises the signal. If it panics, the signal kills nothing, and the sink counts
	// the panic.
	If func(core.Signal) bool
	// ByKey lets a signal that is raised directly on the sink, by no operation, kill
	// the operation whose id, in decimal, is the signal's key.
	ByKey bool
	// LetFinish cancels nothing: an operation that waits or runs goes on, and is
	// evicted as soon as it is finished.
	LetFinish bool
	// KeepPinned leaves operations alone that are pinned when the signal comes, and
	// keeps operations that are pinned when they have finished.
	KeepPinned bool
	// OnKilled is called for each operation that was killed, once it has left the
	// window; OnMissed for each id that the coordinator did not know. They are called
	// with no lock held, on the goroutine that raised the signal or, if the operation
	// was not finished, on a goroutine of the evictor. A panic is counted in [Stats].
	OnKilled, OnMissed func(core.OperationID, core.Signal)
}

func (o Options) resolved(target Target) (Options, error) {
	if target == nil {
		return o, errors.New("volatile: New needs a coordinator, not nil")
	}
	o.Pattern = cmp.Or(o.Pattern, "kill.*")
	return o, nil
}

// A Target is a coordinator, such as a [core.Coordinator]. The Wait of a
// [core.ResultCoordinator] returns a result as well: to evict its operations, embed it in
// a type whose Wait returns the error only.
type Target interface {
	Name() string
	Sink() *core.Sink
	Lookup(core.OperationID) (core.Snapshot, bool)
	Cancel(id core.OperationID, cause error) bool
	Evict(core.OperationID) bool
	Wait(context.Context, core.OperationID) error
}

// Stats are the counters of an evictor, read together, so that at every instant
//
//	Matched = Killed + Missed + Spared + Repeated + Abandoned + Underway
type Stats struct {
	Matched   uint64 `json:"matched"`   // signals that were to kill an operation
	Killed    uint64 `json:"killed"`    // operations that have left the window for it
	Missed    uint64 `json:"missed"`    // were unknown to the coordinator
	Spared    uint64 `json:"spared"`    // were pinned, with KeepPinned
	Repeated  uint64 `json:"repeated"`  // were being killed already
	Abandoned uint64 `json:"abandoned"` // were not finished when Close was called
	Underway  int    `json:"underway"`  // are not finished yet
	Panics    uint64 `json:"panics"`    // of callbacks
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// An Evictor evicts operations that raise a certain signal. Make one with [New]. It
// costs a handler of the sink and, for each operation that is killed while it runs, a
// goroutine until the operation is finished, so there are no more goroutines than
// operations that run; with LetFinish, operations that wait to run have one too. All
// methods are safe for concurrent use, from handlers, bodies and callbacks too.
type Evictor struct {
	target      Target
	opts        Options
	unsubscribe func()
	callbacks   *core.Sink // calls OnKilled and OnMissed, and knows whether they run
	endCalls    func()
	ctx         context.Context // ends with Close
	stop        context.CancelFunc
	waiting     sync.WaitGroup // for operations to finish

	mu       sync.Mutex
	underway map[core.OperationID]struct{}
	stats    Stats
}

// calls is the kind of the signals on Evictor.callbacks. The payload is the call.
var calls = core.NewKind[func()]("volatile.call")

// New makes an evictor for the operations of a coordinator, or says what is wrong. It
// is subscribed to the coordinator's sink until Close.
func New(target Target, opts Options) (*Evictor, error) {
	opts, err := opts.resolved(target)
	if err != nil {
		return nil, err
	}
	callbacks := core.NewSink(core.SinkOptions{Capacity: 1})
	e := &Evictor{target: target, opts: opts, callbacks: callbacks, underway: make(map[core.OperationID]struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.endCalls = calls.Subscribe(e.callbacks, func(_ core.Signal, call func()) { call() })
	e.unsubscribe = target.Sink().Subscribe(opts.Pattern, e.handle)
	return e, nil
}

// Name is the name of the coordinator.
func (e *Evictor) Name() string { return e.target.Name() }

// Sink is the sink of the coordinator.
func (e *Evictor) Sink() *core.Sink { return e.target.Sink() }

// Close ends the subscription. Operations that were to leave the window when they are
// finished stay as long as the coordinator shows them. When Close has returned no
// callback starts; it waits for callbacks that run, unless it is called by a callback or
// a handler. It may be called many times and returns nil.
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
func (e *Evictor) handle(s core.Signal) {
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

// begin notes that an operation is being killed, unless it is already.
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

// kill evicts an operation, now or when it is finished. Its end is deferred because
// handlers of the coordinator may end this goroutine.
func (e *Evictor) kill(id core.OperationID, s core.Signal) {
	counter := &e.stats.Killed
	defer func() { e.end(id, s, counter) }()
	if e.isPinned(id) {
		counter = &e.stats.Spared
		return
	}
	if !e.opts.LetFinish {
		e.target.Cancel(id, ErrKilled)
	}
	if e.target.Evict(id) { // it was finished, or pending until Cancel
		return
	}
	counter = &e.stats.Missed
	if _, known := e.target.Lookup(id); known {
		counter = e.await(id, s)
	}
}

// await starts a goroutine that evicts an operation once it is finished. It returns nil,
// or the counter if the evictor is closed.
func (e *Evictor) await(id core.OperationID, s core.Signal) *uint64 {
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
		e.waiting.Done() // Close does not wait for the rest, which may call Close
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

// end counts an operation that is not underway any more, raises the signal and calls the
// callback. The counter is nil if the operation is underway still.
func (e *Evictor) end(id core.OperationID, s core.Signal, counter *uint64) {
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

func (e *Evictor) report(signal string, callback func(core.OperationID, core.Signal), id core.OperationID, s core.Signal) {
	e.target.Sink().Because(s).RaiseKey(signal, id.String())
	if callback != nil {
		calls.Raise(e.callbacks, "", func() { callback(id, s) })
	}
}
