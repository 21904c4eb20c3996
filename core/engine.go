// This file decides what a coordinator is made of, and in which order its locks are taken.

package core

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/history"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/internal/spin"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
	"github.com/ephemeralgo/ephemeral/core/internal/window"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// engine runs operations: it accepts them, asks the scheduler what is next, watches
// limits and signals, keeps the accounts and shuts down. All coordinators have the
// same engine. They differ in the scheduler and in the kind of body.
//
// The two locks are small. Producers take the intake's lock. Workers take mu
// once per operation, to finish one operation and to choose the next. The end of
// one is the start of the next, so the clock is read once. Callbacks and
// wake-ups are collected in out, and unlock runs them.
//
// Locks are taken in this order; the holder of one takes only locks below it:
//
//	engine.mu    the scheduler, the window and the accounts
//	intake.mu    what has arrived
//	Sink.mu      the facts of a sink, and those of the operations of its coordinators
//	group.mu     the results of a group
//
// The locks of a watermark, a Dispatcher and a Follow are taken alone.
type engine struct {
	number         uint64 // number of this engine in the process: see runsOn
	name           string
	sink           *signals.Sink
	clock          clock.Clock
	opts           Options                // resolved
	onDone         []*hook.Hook[Snapshot] // Options.OnDone, or nil
	lanes          []laneState            // without Options.Lanes, one lane without a name
	classes        []classState           // the first, without a name and a limit, is for operations without a class
	rules          rule                   // for all lanes
	ruled          bool                   // there are rules
	partRuled      bool                   // a lane or a class has a rule
	tries          bool                   // a class has TrialOn
	keyed          bool
	resumeOn       *signals.Gate // nil: none
	quiet          bool          // operations do not raise lifecycle signals
	ofRun          bool          // of ForEach or Map: only their caller enqueues, and at the end the signals in the window stay on the sink
	undrain        func()        // stops watching DrainOn; may be nil
	loop           func()        // e.work with the number on the stack, made once
	errClosed      error         // ErrClosed and ErrFull with the name
	errFull        error
	bodies         any           // the Work or ResultWork
	closed         chan struct{} // closed when Close is done
	token          atomic.Uint32 // see worker.go
	watchesPending atomic.Bool   // there are pendingMarks

	_ spin.CacheLine // producers and workers share no cache line from here on

	intake intake

	_ spin.CacheLine

	mu           sync.Mutex
	slots        sched.Slots
	deferring    deferring
	suspended    sched.List // operations that have given up their slots while they wait
	waits        uint64     // number of the newest wait for an operation of this engine
	detached     bool
	finalized    bool   // closed, and the window is empty
	finalizing   int    // operations for which OnFinalized is being called
	telling      int    // ended operations for which OnDone is being called
	overflow     uint64 // operations that were accepted without room
	scheduler    sched.Board
	window       window.Window
	index        window.Index[OperationID, Operation]
	echoes       echoes
	outcomes     [len(statusNames)]uint64   // how many operations ended with each status
	awaited      map[*Operation][]*bodyWait // see list
	forced       uint64
	times        *history.History // of the lanes, then of the classes; for each, of waits and of runs; nil: nobody has asked
	flushes      []*flush
	final        lists.List[*hook.Hook[Snapshot]] // hooks of OnFinalized
	onClosed     lists.List[*hook.Hook[struct{}]]
	pendingMarks lists.List[*hook.Watermark]
	alarm        clock.Alarm // wakes workers when a deferral may be over
	sweeper      clock.Alarm // evicts operations that are too old
	stuck        stuckWatch
	stuckAlarm   clock.Alarm // looks for bodies that are stuck
	shadowAlarm  clock.Alarm // says whether items wait in shadows
	scope        signals.Scope
	tabulated    bool                      // the scope counts names
	tape         atomic.Pointer[tape.Tape] // nil: nobody records; changed with mu held
	out          engineEffects             // effects of what the holder of mu has done; empty while nobody holds mu
}

var engines atomic.Uint64

func newEngine(opts Options, keyed bool) (*engine, error) {
	if opts.StopOnError {
		return nil, errStopOnError
	}
	opts, err := opts.checked(keyed)
	if err != nil {
		return nil, err
	}
	sink := opts.Sink
	if sink == nil {
		sink = new(signals.Sink)
	}
	e := &engine{
		number:    engines.Add(1),
		errClosed: named(ErrClosed, opts.Name, "is closed"),
		errFull:   named(ErrFull, opts.Name, "has a full queue"),
		name:      opts.Name,
		sink:      sink,
		keyed:     keyed,
		opts:      opts,
		closed:    make(chan struct{}),
		window:    window.New(int64(opts.MaxAge), opts.MaxTracked, opts.MaxFailed, uint8(StatusFailed)),
		echoes:    echoes{limit: opts.EchoCapacity, maxAge: int64(opts.EchoAge)},
		slots:     sched.Slots{Limit: opts.MaxConcurrency, MaxSuspended: opts.MaxSuspended},
		stuck:     newStuckWatch(&opts),
	}
	e.scope.Engine().Init(sink, opts.Name, signals.ScopeOptions{OnSignal: opts.OnSignal, OnRetract: opts.OnRetract})
	e.clock = e.scope.Engine().Clock()
	lanes, classes := opts.parts()
	e.scheduler = sched.New(boardOf(&opts, lanes, classes, keyed), e.clock.Now())
	e.intake.init(lanes, classes)
	work := e.work
	e.loop = func() { engineFrame(e.number, work) }
	e.token.Store(tokenParked)
	if opts.OnDone != nil {
		e.onDone = []*hook.Hook[Snapshot]{hook.New(glob.Pattern{}, opts.OnDone)}
	}
	e.mu.Lock() // the first gate may wake the engine before the last one is made
	defer e.mu.Unlock()
	e.rules = e.newRule(opts.CancelOn, opts.DeferOn, opts.MaxDefer)
	for _, l := range lanes {
		r := e.newRule(l.CancelOn, l.DeferOn, l.MaxDefer)
		e.lanes = append(e.lanes, laneState{l, r})
		e.partRuled = e.partRuled || !r.empty()
	}
	for i, c := range classes {
		r := e.newRule(c.CancelOn, c.DeferOn, c.MaxDefer)
		trial := e.gate(c.TrialOn, false)
		e.classes = append(e.classes, classState{c, r, trial})
		e.partRuled = e.partRuled || !r.empty()
		e.tries = e.tries || trial != nil
		if c.Shadow != nil {
			e.setShadow(uint8(i), c.Shadow)
		}
	}
	e.ruled = e.partRuled || !e.rules.empty()
	e.resumeOn, e.deferring.engine = e.gate(opts.ResumeOn, true), e
	if opts.DrainOn != "" {
		e.undrain = sink.Subscribe(opts.DrainOn, func(s signals.Signal) {
			if s.Key == "" || signals.Match(s.Key, e.name) {
				e.complete()
			}
		})
	}
	return e, nil
}

var (
	errNoWork      = errors.New("core: there must be work to do, not a nil function")
	errNoKey       = errors.New("core: there must be a function that tells the key of an item, not nil")
	errStopOnError = errors.New("core: Options.StopOnError is for ForEach and Map, not for a coordinator")
)

// made panics if the engine is nil.
func (e *engine) made() *engine {
	if e == nil {
		panic("core: the zero value is no coordinator: use NewCoordinator, NewResultCoordinator, NewDispatcher or NewProcessor")
	}
	return e
}

// boardOf says what the scheduler is to be like.
func boardOf(opts *Options, lanes []Lane, classes []Class, keyed bool) sched.Config {
	c := sched.Config{Ageing: int64(opts.Ageing), Simple: !keyed && len(opts.Lanes)+len(opts.Classes) == 0}
	if keyed {
		c.PerKey, c.KeyRate, c.KeyCostRate = opts.MaxPerKey, opts.KeyRate, opts.KeyCostRate
	}
	for _, l := range lanes {
		c.Lanes = append(c.Lanes, l.Limit)
	}
	for i := range classes {
		c.Classes = append(c.Classes, classes[i].limits())
	}
	return c
}

// laneState is what the engine knows about a lane.
type laneState struct {
	Lane // resolved
	rule
}

// classState is what the engine knows about a class.
type classState struct {
	Class // resolved; its limit and rates are guarded by mu
	rule
	trialOn *signals.Gate // nil: none
}

// started lists the operations that have started and not ended. mu is held.
func (e *engine) started() []*Operation {
	return operationsOf(e.scheduler.AppendWanting(e.suspended.AppendTo(e.slots.Running.AppendTo(nil))))
}

// alive is the number of operations that have started and not ended. mu is held.
func (e *engine) alive() int {
	return e.slots.Running.Len() + e.suspended.Len() + e.scheduler.Wanting()
}

// unfinished is the number of operations whose waiters have not been answered. mu is held.
func (e *engine) unfinished() int {
	e.collect()
	return e.alive() + e.telling + e.scheduler.Pending()
}

// find returns an operation that is pending, running or in the window.
func (e *engine) find(id OperationID) *Operation {
	e.lockFresh()
	defer e.mu.Unlock()
	return e.index.Get(id)
}

// lockFresh locks the engine, moves accepted operations to the scheduler, and evicts
// operations that are too old for the window.
func (e *engine) lockFresh() {
	e.made().mu.Lock()
	e.collect()
	oldest, ok := e.window.Oldest()
	if !ok || e.opts.MaxAge == 0 {
		return
	}
	now := e.clock.Now()
	if oldest > now-int64(e.opts.MaxAge) {
		return
	}
	e.sweep(now)
	e.unlock()
	e.mu.Lock()
}

func byID(a, b *Operation) int { return cmp.Compare(a.owner.ID, b.owner.ID) }

func (e *engine) setPaused(paused bool, signal string) {
	e.made().mu.Lock()
	changed := e.slots.Paused != paused
	e.slots.Paused = paused
	e.mu.Unlock()
	e.wake()
	if changed {
		e.sink.RaiseKey(signal, e.name)
	}
}
