package volatile

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrKilled is the cause with which an operation is cancelled that is killed.
var ErrKilled = errors.New("volatile: operation was killed by a signal")

// Signals that an evictor raises, on the sink of the coordinator, caused by the signal
// that killed, with the id of the operation as key. They kill nothing themselves,
// whatever the pattern.
const (
	// SignalKilled tells that an operation was killed and has left the window.
	SignalKilled = "volatile.killed"
	// SignalMissed tells that there was no such operation, or not any more.
	SignalMissed = "volatile.missed"
)

// Options configure an [Evictor]. The zero value is the default.
type Options struct {
	// Pattern is which signals kill; "" means "kill.*". See [core.Match].
	Pattern string
	// If, if it is set, has to agree as well. It is called on the goroutine that
	// raises the signal, which kills nothing if it panics; the sink counts that.
	If func(core.Signal) bool
	// ByKey lets a signal that is raised directly on the sink, by no operation, kill
	// the operation whose id, in decimal, is the signal's key.
	ByKey bool
	// LetFinish cancels nothing: what waits or runs goes on, and is evicted as soon as
	// it is finished.
	LetFinish bool
	// KeepPinned leaves operations alone that are pinned when the signal comes, and
	// lets those stay that are pinned when they have finished.
	KeepPinned bool
	// OnKilled is told of each operation that was killed, once it has left the window;
	// OnMissed of each id that the coordinator did not know. They are called with no
	// lock held, on the goroutine that raised the signal or, if the operation had to be
	// waited for, on one of the evictor's. A panic is counted in [Stats].
	OnKilled, OnMissed func(core.OperationID, core.Signal)
}

// A Target is a coordinator: a [core.Coordinator] is one as it is, a
// [core.ResultCoordinator] by [Results].
type Target interface {
	Sink() *core.Sink
	Lookup(core.OperationID) (core.Snapshot, bool)
	Cancel(id core.OperationID, cause error) bool
	Evict(core.OperationID) bool
	Wait(context.Context, core.OperationID) error
}

// Results makes a [Target] of a coordinator whose operations have results.
func Results[In, Out any](c *core.ResultCoordinator[In, Out]) Target {
	if c == nil {
		return nil
	}
	return results[In, Out]{c}
}

type results[In, Out any] struct {
	*core.ResultCoordinator[In, Out]
}

func (r results[In, Out]) Wait(ctx context.Context, id core.OperationID) error {
	_, err := r.ResultCoordinator.Wait(ctx, id)
	return err
}

// Stats are the counters of an evictor, read as one cut, so that at every instant
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

// An Evictor evicts operations that raise a certain signal. Make one with [New]. It
// costs a handler of the sink and, for each operation that is killed while it runs, a
// goroutine until that is finished, so there are no more than operations run at once;
// with LetFinish those count as well that were killed while they waited to run. All
// methods are safe for concurrent use, from handlers, bodies and callbacks too.
type Evictor struct {
	target      Target
	opts        Options
	unsubscribe func()
	callbacks   *core.Sink // calls them, and knows whether they run
	silence     func()
	ctx         context.Context // ends with Close
	stop        context.CancelFunc
	waiting     sync.WaitGroup // for operations to finish

	mu       sync.Mutex
	closed   bool
	underway map[core.OperationID]struct{}
	stats    Stats
}

// New makes an evictor for the operations of a coordinator, or says what is wrong. It
// watches the coordinator's sink until Close.
func New(target Target, opts Options) (*Evictor, error) {
	if target == nil {
		return nil, errors.New("volatile: there must be a coordinator, not nil")
	}
	if opts.Pattern == "" {
		opts.Pattern = "kill.*"
	}
	e := &Evictor{target: target, opts: opts, underway: make(map[core.OperationID]struct{})}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.callbacks = core.NewSink(core.SinkOptions{Capacity: 1})
	e.silence = told.Subscribe(e.callbacks, func(_ core.Signal, r report) { r.callback(r.id, r.signal) })
	e.unsubscribe = target.Sink().Subscribe(opts.Pattern, e.notice)
	return e, nil
}

// Close ends the watching. Operations that were to leave the window when they are
// finished stay for as long as the coordinator shows them. When Close has returned no
// callback starts; it waits for those that run, unless it is called from a callback or
// a handler. It may be called many times and returns nil.
func (e *Evictor) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.unsubscribe()
	e.silence()
	e.stop()
	e.waiting.Wait()
	return nil
}

// Stats returns the counters.
func (e *Evictor) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Underway = len(e.underway)
	s.Panics = e.callbacks.Stats().Panics
	return s
}

// notice is the handler.
func (e *Evictor) notice(s core.Signal) {
	if s.Name == SignalKilled || s.Name == SignalMissed {
		return
	}
	id := s.Operation
	if id == 0 && e.opts.ByKey {
		n, _ := strconv.ParseUint(s.Key, 10, 64)
		id = core.OperationID(n)
	}
	if id == 0 || e.opts.If != nil && !e.opts.If(s) {
		return
	}
	if e.begin(id) {
		e.kill(id, s)
	}
}

// begin notes that an operation is being killed, unless it is already.
func (e *Evictor) begin(id core.OperationID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.stats.Matched++
	if _, ok := e.underway[id]; ok {
		e.stats.Repeated++
		return false
	}
	e.underway[id] = struct{}{}
	return true
}

// kill does to an operation what its state calls for. The deferred ends are for
// handlers of the coordinator that end this goroutine.
func (e *Evictor) kill(id core.OperationID, s core.Signal) {
	outcome := &e.stats.Killed
	defer func() {
		if outcome != nil {
			e.end(id, s, outcome)
		}
	}()
	if e.isPinned(id) {
		outcome = &e.stats.Spared
		return
	}
	if e.target.Evict(id) {
		return
	}
	known := false
	if e.opts.LetFinish {
		_, known = e.target.Lookup(id)
	} else {
		known = e.target.Cancel(id, ErrKilled)
	}
	if e.target.Evict(id) { // it was pending, or has finished meanwhile
		return
	}
	outcome = &e.stats.Missed
	if known {
		outcome = e.await(id, s)
	}
}

// await evicts an operation once it is finished. It returns nil unless it is too late
// for that.
func (e *Evictor) await(id core.OperationID, s core.Signal) (outcome *uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return &e.stats.Abandoned
	}
	e.waiting.Add(1)
	go func() {
		e.target.Wait(e.ctx, id)
		e.mu.Lock()
		closed := e.closed
		e.mu.Unlock()
		if closed {
			e.end(id, s, &e.stats.Abandoned)
			e.waiting.Done()
			return
		}
		e.waiting.Done() // Close does not wait for what follows, which may call it
		outcome := &e.stats.Spared
		defer func() { e.end(id, s, outcome) }()
		if !e.isPinned(id) {
			outcome = &e.stats.Killed
			e.target.Evict(id) // or the window has done so already
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

// end counts what has become of an operation that was to be killed, and tells.
func (e *Evictor) end(id core.OperationID, s core.Signal, outcome *uint64) {
	e.mu.Lock()
	*outcome++
	delete(e.underway, id)
	e.mu.Unlock()
	switch outcome {
	case &e.stats.Killed:
		e.tell(SignalKilled, e.opts.OnKilled, id, s)
	case &e.stats.Missed:
		e.tell(SignalMissed, e.opts.OnMissed, id, s)
	}
}

// report is what a callback is told.
type report struct {
	callback func(core.OperationID, core.Signal)
	id       core.OperationID
	signal   core.Signal
}

var told = core.NewKind[report]("volatile.told")

func (e *Evictor) tell(signal string, callback func(core.OperationID, core.Signal), id core.OperationID, s core.Signal) {
	e.target.Sink().Because(s).RaiseKey(signal, id.String())
	if callback != nil {
		told.Raise(e.callbacks, "", report{callback, id, s})
	}
}
