package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// engine runs operations: it accepts them, asks the scheduler what is next,
// heeds limits and signals, keeps the accounts and shuts down. It is the same for
// every coordinator; they differ in the scheduler and in what a body is.
//
// The two locks are small. Producers take the intake's. Workers take mu once per
// operation, to finish one and to choose the next; its end is the next one's
// start, so the clock is read once. What follows for others, such as callbacks
// and wakings, is collected in an outcome and done when no lock is held.
type engine struct {
	number      uint64 // of this engine in the process: see runningOn
	name        string
	perKey      int // Options.MaxPerKey
	sink        *Sink
	clock       clock
	dropsOldest bool                   // Options.DropOldest
	onReturn    func(err error)        // a body has returned; no lock is held
	onUnrun     func(err error) func() // an operation will not run; mu is held, not for what it returns
	lanes       []Lane                 // resolved; one without a name if there are none
	laned       bool                   // there are lanes
	plain       bool                   // the scheduler is first in, first out
	rules       rule                   // for all lanes
	laneRules   []rule                 // by lane; nil: none has any
	resumeOn    *condition             // nil: none
	heeds       bool                   // there are rules
	quiet       bool                   // operations do not raise lifecycle signals
	bequeaths   bool                   // what operations in the window have raised stays on the sink at the end
	undrain     func()                 // ends the watching of DrainOn; may be nil
	loop        func()                 // e.work, made once
	closed      chan struct{}          // closed when Close is done
	token       atomic.Uint32          // see worker.go

	_ cacheLine // producers and workers do not share any from here on

	intake intake

	_ cacheLine

	mu         sync.Mutex
	running    opList
	limit      int
	paused     bool
	closing    bool
	detached   bool
	finalized  bool     // closed, and the window is empty
	finalizing int      // operations of which OnFinalized is being told
	left       []uint64 // by lane: operations that were pending and are not any more
	scheduler  scheduler
	window     window
	index      index
	echoes     echoes
	counts     struct{ succeeded, failed, cancelled, refused, dropped, forced uint64 }
	flushes    []*flush
	final      []*hook[Snapshot] // of OnFinalized; replaced, not changed
	maxPinned  int
	nested     int   // of the running operations, how many wait in their body; guarded by nested.mu
	alarm      alarm // wakes when a deferral may be over
	sweeper    alarm // evicts what is too old
	ledger     ledger
}

// cacheLine keeps what is before it and what is after it from sharing one.
type cacheLine [64]byte

// flush waits for the operations accepted before it.
type flush struct {
	epoch uint32 // of the newest operation it waits for
	left  int
	done  chan struct{}
}

// includes reports whether f waits for o, if that has not finished.
func (f *flush) includes(o *Operation) bool { return int32(o.epoch-f.epoch) <= 0 }

// outcome is what a change under the engine's lock entails.
type outcome struct {
	contexts []*cancellation // of bodies that have returned
	ended    []chan struct{} // somebody waits for that
	calls    []func()        // of onUnrun
	after    aftermath       // of signals that have left with their operations
	final    []last
	flushed  []*flush
	closed   bool       // Close is done
	left     []laneLeft // lanes that operations have left while somebody waited for room
}

// foreign reports whether settling it runs foreign code.
func (out *outcome) foreign() bool {
	return !out.after.empty() || len(out.final) > 0
}

// laneLeft says how many have left the queue of a lane by now.
type laneLeft struct {
	lane uint8
	left uint64
}

// last is an operation that has left the window, and whom to tell.
type last struct {
	operation *Operation
	snapshot  Snapshot
	hooks     []*hook[Snapshot]
}

var engines atomic.Uint64

func newEngine(opts Options, keyed bool) (*engine, error) {
	perKey := opts.MaxPerKey
	opts, err := opts.resolved()
	if err == nil && perKey != 0 && !keyed {
		err = fmt.Errorf("core: Options.MaxPerKey is %d, but this is without keys", perKey)
	}
	if err != nil {
		return nil, err
	}
	sink := opts.Sink
	if sink == nil {
		sink = NewSink(SinkOptions{})
	}
	e := &engine{
		number:      engines.Add(1),
		name:        opts.Name,
		perKey:      opts.MaxPerKey,
		sink:        sink,
		clock:       sink.names.clock,
		dropsOldest: opts.DropOldest,
		lanes:       opts.Lanes,
		laned:       len(opts.Lanes) > 0,
		plain:       !keyed && len(opts.Lanes) == 0,
		left:        make([]uint64, max(1, len(opts.Lanes))),
		closed:      make(chan struct{}),
		window:      window{limit: opts.MaxTracked, maxAge: int64(opts.MaxAge)},
		echoes:      echoes{limit: opts.EchoCapacity, maxAge: int64(opts.EchoAge)},
		limit:       opts.MaxConcurrency,
		maxPinned:   opts.MaxTracked,
	}
	if e.plain {
		e.scheduler = new(fifo)
	} else {
		e.scheduler = newBoard(&opts, keyed)
	}
	if !e.laned {
		e.lanes = make([]Lane, 1)
	}
	e.intake.init(&opts)
	e.loop = e.work
	e.token.Store(tokenParked)
	e.ledger.init(sink, opts.Name, &opts)
	e.rules = e.newRule(opts.CancelOn, opts.DeferOn, opts.MaxDefer)
	for i := range opts.Lanes {
		l := &opts.Lanes[i]
		if r := e.newRule(l.CancelOn, l.DeferOn, l.MaxDefer); r.cancelOn != nil || r.deferOn != nil {
			if e.laneRules == nil {
				e.laneRules = make([]rule, len(opts.Lanes))
			}
			e.laneRules[i] = r
		}
	}
	e.resumeOn = e.ledger.condition(opts.ResumeOn, e, true)
	e.heeds = e.laneRules != nil || e.rules != rule{maxDefer: e.rules.maxDefer}
	if opts.DrainOn != "" {
		e.undrain = sink.Subscribe(opts.DrainOn, func(s Signal) {
			if s.Key == "" || Match(s.Key, e.name) {
				e.Complete()
			}
		})
	}
	return e, nil
}

// enqueue gives an operation to the engine. Unless wait is set it does not wait
// for room.
func (e *engine) enqueue(ctx context.Context, o *Operation, d door, wait bool) error {
	if wait && ctx.Err() != nil {
		return e.intake.reject(context.Cause(ctx))
	}
	if d.err != nil {
		return e.intake.reject(d.err)
	}
	o.engine, o.base, o.lane = e, baseOf(ctx), d.lane
	o.enqueued = e.clock.now()
	if e.refuses(o.lane) {
		e.lockFresh() // with operations that have to leave their signals go
		e.mu.Unlock()
		if err := e.refusal(o.lane, o.enqueued); err != nil {
			return e.intake.reject(err)
		}
	}
	err := e.intake.offer(o)
	for err == ErrFull && e.dropsOldest {
		e.dropOldest(o.lane)
		err = e.intake.offer(o)
	}
	if err == ErrFull {
		err = e.enqueueFull(ctx, o, wait)
	}
	if err != nil {
		return e.intake.reject(err)
	}
	e.poke()
	return nil
}

// enqueueFull goes on when there seems to be no room.
func (e *engine) enqueueFull(ctx context.Context, o *Operation, wait bool) error {
	own := wait && e.isOwn(ctx)
	in := &e.intake
	e.mu.Lock()
	in.mu.Lock()
	q := &in.queues[o.lane]
	q.left = e.left[o.lane]
	var (
		w   *waiter
		err error
	)
	switch {
	case in.closed:
		err = ErrClosed
	case len(q.waiters) == 0 && !q.full():
		in.accept(o)
	case !wait:
		err = ErrFull
	case own:
		err = ErrWouldDeadlock
	default:
		w = in.queue(o)
	}
	in.mu.Unlock()
	e.mu.Unlock()
	if w == nil {
		return err
	}
	if err := (awaited{engine: e, room: w}).wait(ctx, w.settled); err != nil {
		return in.unqueue(w, err)
	}
	return w.err
}

// dropOldest makes room in a lane, if there is none, by dropping the item that has
// waited longest there.
func (e *engine) dropOldest(lane uint8) {
	var out outcome
	in := &e.intake
	e.mu.Lock()
	e.collect()
	in.mu.Lock()
	q := &in.queues[lane]
	q.left = e.left[lane]
	full := q.full() && !in.closed
	in.mu.Unlock()
	if oldest := e.scheduler.oldest(lane); full && oldest != nil { // it may have arrived just now: then once more
		e.withdraw(oldest, StatusDropped, ErrDropped, e.clock.now(), &out)
		in.mu.Lock()
		q.left = e.left[lane]
		in.mu.Unlock()
	}
	e.mu.Unlock()
	e.settle(&out)
}

// isOwn reports whether the caller is an operation of this engine: by its
// goroutine or by its context.
func (e *engine) isOwn(ctx context.Context) bool {
	o := OperationFrom(ctx)
	e.mu.Lock()
	none := e.running.n == 0
	own := o != nil && o.engine == e && o.status == StatusRunning
	e.mu.Unlock()
	return own || !none && runningOn() == e.number
}

// collect moves what has arrived to the scheduler. mu is held.
func (e *engine) collect() {
	in := &e.intake
	if !in.fresh.Load() {
		return
	}
	in.mu.Lock()
	arrived := in.arrived
	in.arrived = opList{}
	in.fresh.Store(false)
	for i := range in.queues {
		in.queues[i].left = e.left[i]
	}
	in.mu.Unlock()
	for o := arrived.head; o != nil; {
		next := o.next
		e.index.put(o)
		e.scheduler.push(o)
		o = next
	}
}

// next takes the operation that is to start now, or nil; blocked says that there
// may be one but something other than arrivals has to happen first. mu is held.
func (e *engine) next(now int64, out *outcome) (o *Operation, blocked bool) {
	var barred laneSet // by DeferOn
	for {
		if e.running.n >= e.limit || e.paused || e.closing {
			return nil, true
		}
		if !e.plain { // what has just arrived may go before all others
			e.collect()
		}
		o = e.scheduler.next(now, barred)
		if o == nil {
			e.collect()
			if o = e.scheduler.next(now, barred); o == nil {
				// A rule for all holds up arrivals as well; one for a lane may not.
				return nil, barred != 0 && e.laneRules == nil
			}
		}
		if e.refuses(o.lane) || e.defers(o.lane) {
			e.sweep(now, out) // with operations that have to leave their signals go
		}
		if e.refuses(o.lane) {
			if err := e.refusal(o.lane, now); err != nil {
				e.withdraw(o, StatusRefused, err, now, out)
				continue
			}
		}
		if e.defers(o.lane) {
			lane := o.lane
			if o = e.undeferred(o, now); o == nil {
				barred = barred.with(lane)
				continue
			}
		}
		e.scheduler.start(o)
		e.leaveQueue(o, out)
		return o, false
	}
}

// leaveQueue counts that o is not pending any more. mu is held. Whoever waits for
// room has begun to with mu held.
func (e *engine) leaveQueue(o *Operation, out *outcome) {
	e.left[o.lane]++
	if e.intake.waiting.Load() == 0 {
		return
	}
	for i := range out.left {
		if l := &out.left[i]; l.lane == o.lane {
			l.left = e.left[o.lane]
			return
		}
	}
	out.left = append(out.left, laneLeft{o.lane, e.left[o.lane]})
}

// retire records the end of an operation and puts it into the window. mu is held.
func (e *engine) retire(o *Operation, status Status, err error, now int64, out *outcome) {
	o.status, o.err, o.finished = status, err, now
	o.body.discard()
	if o.done != nil {
		out.ended = append(out.ended, o.done)
	}
	for _, f := range e.flushes {
		if f.includes(o) {
			if f.left--; f.left == 0 {
				out.flushed = append(out.flushed, f)
			}
		}
	}
	if len(out.flushed) > 0 {
		e.flushes = slices.DeleteFunc(e.flushes, func(f *flush) bool { return f.left == 0 })
	}
	e.window.add(o)
	e.sweep(now, out)
}

// sweep evicts what the window need not show any more. mu is held.
func (e *engine) sweep(now int64, out *outcome) {
	for o := e.window.evict(now); o != nil; o = e.window.evict(now) {
		e.forget(o, now, out)
	}
	if e.window.maxAge == 0 || e.sweeper.armed {
		return
	}
	if o := e.window.finished.head; o != nil {
		// Reading sweeps as well, so where no signal is waited to go, a busy
		// window has a few dozen sweeps per MaxAge, not one per operation.
		at := later(o.finished, e.window.maxAge)
		if !e.heeds {
			at = max(at, later(e.sweeper.last, e.window.maxAge/64))
		}
		e.sweeper.set(e.clock, at, e.tidy)
	}
}

// tidy is the sweeper's alarm.
func (e *engine) tidy() {
	var out outcome
	e.mu.Lock()
	now := e.clock.now()
	e.sweeper.armed, e.sweeper.last = false, now
	e.sweep(now, &out)
	e.mu.Unlock()
	e.settle(&out)
}

// forget drops an operation that has left the window. mu is held.
func (e *engine) forget(o *Operation, now int64, out *outcome) {
	e.index.remove(o)
	if o.marks&watched == 0 {
		o.body.forget()
	}
	if len(e.final) > 0 {
		e.finalizing++
		out.final = append(out.final, last{o, o.snapshot(), e.final})
	}
	e.echoes.add(o, e.ledger.bury(o, e.bequeaths && e.finalized, &out.after), now)
}

// settle does what an outcome entails. No lock is held. It is safe to be called
// with an empty outcome, which is left empty.
func (e *engine) settle(out *outcome) {
	for i, real := range out.contexts {
		out.contexts[i] = nil
		real.cancel(context.Canceled)
	}
	out.contexts = out.contexts[:0]
	for i, done := range out.ended {
		out.ended[i] = nil
		close(done)
	}
	out.ended = out.ended[:0]
	for i, call := range out.calls {
		out.calls[i] = nil
		call()
	}
	out.calls = out.calls[:0]
	for _, l := range out.left {
		if e.intake.admit(l.lane, l.left) {
			e.poke()
		}
	}
	out.left = out.left[:0]
	if out.foreign() {
		e.settleForeign(out)
		return
	}
	if len(out.flushed) > 0 {
		for _, f := range out.flushed {
			close(f.done)
		}
		out.flushed = out.flushed[:0]
		e.detachIfDone()
	}
	if out.closed {
		out.closed = false
		close(e.closed)
	}
}

// settleForeign does what runs foreign code, and then the rest, even if that ends
// the goroutine.
func (e *engine) settleForeign(out *outcome) {
	defer e.settle(out)
	if after := out.after; !after.empty() {
		out.after = aftermath{}
		after.settle()
		e.ledger.tellRetracted(after.gone, "")
		return
	}
	e.tellFinal(out)
}

// tellFinal tells of the operations that have left the window. Close waits for
// that to be done.
func (e *engine) tellFinal(out *outcome) {
	final := out.final
	out.final = nil
	defer func() {
		e.mu.Lock()
		e.finalizing -= len(final)
		closed := e.finalized && e.finalizing == 0
		e.mu.Unlock()
		if closed {
			close(e.closed)
		}
	}()
	for i := range final {
		f := &final[i]
		f.snapshot.Parent = f.operation.Parent()
		deliver(f.hooks, false, &f.snapshot, &e.ledger.panics)
	}
}

// alarm is a timer that is set at most once at a time.
type alarm struct {
	timer *time.Timer
	at    int64
	armed bool
	last  int64 // when it last rang
}

// set lets the alarm ring at that time, or earlier if it is set to earlier.
func (a *alarm) set(c clock, at int64, ring func()) {
	if a.armed && a.at <= at {
		return
	}
	a.armed, a.at = true, at
	d := time.Duration(at - c.now())
	if a.timer == nil {
		a.timer = time.AfterFunc(d, ring)
	} else {
		a.timer.Reset(d)
	}
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.armed = false
}
