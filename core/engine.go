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
// watches limits and signals, keeps the accounts and shuts down. It is the same for
// every coordinator; they differ in the scheduler and in what a body is.
//
// The two locks are small. Producers take the intake's. Workers take mu once per
// operation, to finish one and to choose the next; its end is the next one's
// start, so the clock is read once. What follows for others, such as callbacks
// and wakings, is collected in out and done by unlock.
type engine struct {
	number         uint64 // of this engine in the process: see runningOn
	name           string
	sink           *Sink
	clock          clock
	opts           Options           // resolved
	onDone         []*hook[Snapshot] // Options.OnDone, or nil
	lanes          []laneState       // one without a name if there are none
	classes        []Class           // resolved; the first, without a name and a limit, is that of operations without one
	rules          rule              // for all lanes
	ruled          bool              // there are rules
	laneRuled      bool              // a lane has one
	resumeOn       *condition        // nil: none
	quiet          bool              // operations do not raise lifecycle signals
	keepsSignals   bool              // what operations in the window have raised stays on the sink at the end
	undrain        func()            // ends the watching of DrainOn; may be nil
	loop           func()            // e.work, made once
	errClosed      error             // ErrClosed and ErrFull with the name
	errFull        error
	bodies         any           // the Work or ResultWork
	closed         chan struct{} // closed when Close is done
	token          atomic.Uint32 // see worker.go
	watchesPending atomic.Bool   // there are pendingMarks

	_ cacheLine // producers and workers do not share any from here on

	intake intake

	_ cacheLine

	mu           sync.Mutex
	running      opList // have a slot
	suspended    opList // have given it up while they wait
	resuming     opList // wait for it to come back
	lent         int    // of the suspended ones, how many count against maxSuspended
	waits        uint64 // number of the newest wait for an operation of this engine
	limit        int
	paused       bool
	closing      bool
	detached     bool
	finalized    bool   // closed, and the window is empty
	finalizing   int    // operations that OnFinalized is being called for
	telling      int    // ended operations that OnDone is being called for
	overflow     uint64 // operations that were accepted without room
	scheduler    board
	queues       []waitingRoom  // by place in the intake
	only         [1]waitingRoom // these, of a coordinator with one
	window       window
	index        index
	echoes       echoes
	outcomes     [len(statusNames)]uint64    // how many ended with a status
	awaited      map[*Operation]*[]*bodyWait // see awaitedBy
	forced       uint64
	flushes      []*flush
	final        []*hook[Snapshot] // of OnFinalized; replaced, not changed
	onClosed     []*hook[struct{}] // likewise
	pendingMarks []*watermark
	alarm        alarm // wakes when a deferral may be over
	sweeper      alarm // evicts what is too old
	ledger       ledger
	out          engineEffects // of what the holder of mu has done; empty while nobody has it
}

// cacheLine keeps what is before it and what is after it from sharing one.
type cacheLine [64]byte

// flush waits for some operations, or until there are none.
type flush struct {
	includes func(*Operation) bool // which ones, of those that have not ended; nil: all, until there are none
	left     int                   // 0: done
	done     chan struct{}
}

// ended notes that o has ended, and reports whether the wait is over. o.engine.mu is held.
func (f *flush) ended(o *Operation) (over bool) {
	switch {
	case f.includes == nil:
		f.left = o.engine.unfinished()
	case f.includes(o):
		f.left--
	}
	return f.left == 0
}

var engines atomic.Uint64

func newEngine(opts Options, keyed bool) (*engine, error) {
	if opts.StopOnError {
		return nil, errStopOnError
	}
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
		sink = new(Sink)
	}
	sink.prepareZero()
	e := &engine{
		number:    engines.Add(1),
		errClosed: named(ErrClosed, opts.Name, "is closed"),
		errFull:   named(ErrFull, opts.Name, "has a full queue"),
		name:      opts.Name,
		sink:      sink,
		clock:     sink.names.clock,
		opts:      opts,
		classes:   append(make([]Class, 1), opts.Classes...),
		closed:    make(chan struct{}),
		window:    window{maxAge: int64(opts.MaxAge), finished: share{limit: opts.MaxTracked}, failed: share{limit: opts.MaxFailed}},
		echoes:    echoes{limit: opts.EchoCapacity, maxAge: int64(opts.EchoAge)},
		limit:     opts.MaxConcurrency,
	}
	lanes := opts.Lanes
	if len(lanes) == 0 {
		lanes = []Lane{{Depth: opts.MaxQueued}}
	}
	e.scheduler = newBoard(lanes, e.classes, &opts, keyed)
	e.intake.init(lanes, e.classes)
	e.queues = append(e.only[:0], make([]waitingRoom, len(e.intake.rooms))...)
	e.loop = e.work
	e.token.Store(tokenParked)
	e.ledger.init(sink, opts.Name, &opts)
	if opts.OnDone != nil {
		e.onDone = []*hook[Snapshot]{newHook(pattern{}, opts.OnDone)}
	}
	e.rules = e.newRule(opts.CancelOn, opts.DeferOn, opts.MaxDefer)
	for _, l := range lanes {
		r := e.newRule(l.CancelOn, l.DeferOn, l.MaxDefer)
		e.lanes = append(e.lanes, laneState{l, r})
		e.laneRuled = e.laneRuled || !r.empty()
	}
	e.ruled = e.laneRuled || !e.rules.empty()
	e.resumeOn = e.ledger.condition(opts.ResumeOn, e, true)
	if opts.DrainOn != "" {
		e.undrain = sink.Subscribe(opts.DrainOn, func(s Signal) {
			if s.Key == "" || Match(s.Key, e.name) {
				Control{e}.Complete()
			}
		})
	}
	return e, nil
}

// enqueue gives an operation to the engine. Unless wait is set it does not wait
// for room.
func (e *engine) enqueue(ctx context.Context, o *Operation, d door, wait bool) error {
	e.made()
	if ctx == nil {
		panic(nilContext)
	}
	if wait && ctx.Err() != nil {
		return e.reject(context.Cause(ctx))
	}
	if d.err != nil {
		return e.reject(d.err)
	}
	o.engine, o.lane, o.class = e, d.lane, d.class
	if o.base == nil {
		o.base = baseOf(ctx, time.Time{})
	}
	o.enqueued = e.clock.now()
	if e.ruled && e.refuses(o.lane) {
		e.lockFresh() // with operations that have to leave their signals go
		e.mu.Unlock()
		if err := e.refusal(o.lane, o.enqueued); err != nil {
			return e.reject(err)
		}
	}
	err := e.intake.offer(o)
	if err == ErrFull {
		err = e.enqueueFull(ctx, o, wait && !e.opts.DropOldest)
	}
	if err != nil {
		return e.reject(err)
	}
	e.wakeForArrival()
	if e.watchesPending.Load() {
		e.mu.Lock()
		e.seePending()
		e.unlock()
	}
	return nil
}

// reject counts an item that was not accepted because of err, and returns the error for
// the caller.
func (e *engine) reject(err error) error {
	in := &e.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rejected++
	switch {
	case in.closed: // goes before anything else
		return e.errClosed
	case err == ErrFull:
		return e.errFull
	}
	return err
}

// enqueueFull goes on when there seems to be no room.
func (e *engine) enqueueFull(ctx context.Context, o *Operation, wait bool) error {
	beyond := wait && e.isOwn(ctx)
	var settled chan struct{}
	e.mu.Lock()
	e.intake.mu.Lock()
	e.refresh()
	e.intake.mu.Unlock()
	err := e.intake.offer(o)
	switch {
	case err != ErrFull:
	case beyond:
		e.acceptBeyond(o)
		e.overflow++
		err = nil
	case wait:
		settled = make(chan struct{})
		o.done = settled
		e.waitForRoom(o)
		e.wakeLocked() // it may be able to start
	default:
		err = e.squeeze(o)
	}
	e.unlock()
	if settled == nil {
		return err
	}
	if err := (awaited{engine: e, room: o}).wait(ctx, settled); err != nil {
		e.mu.Lock()
		defer e.unlock()
		if e.giveUpRoom(o) {
			e.wakeLocked() // the next of its key may be able to start
			return err
		}
	}
	if o.id == 0 {
		return ErrClosed
	}
	return nil
}

// refresh tells the intake how much room there is. Both locks are held.
func (e *engine) refresh() {
	for i := range e.queues {
		e.intake.rooms[i].left = e.queues[i].left
	}
}

// acceptBeyond accepts an operation without room. mu is held, and the intake is open.
func (e *engine) acceptBeyond(o *Operation) {
	e.intake.mu.Lock()
	e.intake.accept(o)
	e.intake.mu.Unlock()
}

// squeeze accepts an operation if there is room once all that can start has been
// started, or if it can start itself, or in place of the oldest. mu is held.
func (e *engine) squeeze(o *Operation) error {
	now := e.clock.now()
	e.waitForRoom(o)
	e.startAll(now)
	if !e.giveUpRoom(o) {
		return nil
	}
	if !e.opts.DropOldest {
		return ErrFull
	}
	oldest := e.oldest(o.lane, o.class)
	if oldest == nil {
		return ErrFull
	}
	e.acceptBeyond(o)
	e.collect() // so that a key of both keeps its turn
	e.withdraw(oldest, StatusDropped, ErrDropped, now)
	return nil
}

// oldest returns the operation of a lane and class that has been pending longest, or nil.
// mu is held. Each operation is passed once, as ids come in ascending order.
func (e *engine) oldest(lane, class uint8) *Operation {
	e.collect()
	q := &e.queues[e.intake.place(lane, class)]
	from := max(1, q.oldest)
	at, _ := e.index.find(from)
	for _, p := range e.index.pages[at:] {
		for i := max(from, p.first) - p.first; i < idBlock; i++ {
			if o := p.operations[i]; o != nil && o.lane == lane && o.class == class && o.status == StatusPending {
				q.oldest = o.id
				return o
			}
		}
	}
	q.oldest = e.index.newest + 1
	return nil
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
	e.refresh()
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
func (e *engine) next(now int64) (o *Operation, blocked bool) {
	var barred laneSet // by DeferOn
	for {
		if e.full() || e.paused || e.closing {
			return nil, true
		}
		if !e.scheduler.plain { // what has just arrived may go before all others
			e.collect()
		}
		o = e.scheduler.next(now, barred)
		if o == nil || o.marks&roomless != 0 { // what has arrived goes before that
			e.collect()
			if o = e.scheduler.next(now, barred); o == nil {
				// A rule for all holds up arrivals as well; one for a lane may not.
				return nil, barred != 0 && !e.laneRuled
			}
		}
		var refused error
		overdue := false
		if e.ruled {
			e.sweep(now) // with operations that have to leave their signals go
			if e.refuses(o.lane) {
				refused = e.refusal(o.lane, now)
			}
			if refused == nil && e.defers(o.lane) {
				lane := o.lane
				if o, overdue = e.undeferred(o, e.scheduler.earliest(lane), now); o == nil {
					barred = barred.with(lane)
					continue
				}
			}
		}
		if o.marks&roomless != 0 && !e.admit(o) {
			continue // with what has arrived
		}
		if refused != nil {
			e.withdraw(o, StatusRefused, refused, now)
			continue
		}
		if g := groupOf(o); g != nil && g.halted != nil {
			e.withdraw(o, StatusCancelled, g.halted, now)
			continue
		}
		if overdue {
			o.marks |= forced
			e.forced++
		}
		e.scheduler.start(o)
		e.leaveQueue(o)
		return o, false
	}
}

// full reports whether nothing that is pending may start. mu is held.
func (e *engine) full() bool { return e.running.n+max(0, e.lent-e.opts.MaxSuspended) >= e.limit }

// started lists the operations that have started and not ended. mu is held.
func (e *engine) started() []*Operation {
	return e.resuming.appendTo(e.suspended.appendTo(e.running.appendTo(nil)))
}

// alive is the number of operations that have started and not ended. mu is held.
func (e *engine) alive() int { return e.running.n + e.suspended.n + e.resuming.n }

// unfinished is the number of operations whose waiters have not been answered. mu is held.
func (e *engine) unfinished() int {
	e.collect()
	return e.alive() + e.telling + e.scheduler.pending()
}

// leaveQueue counts that o is not pending any more. mu is held.
func (e *engine) leaveQueue(o *Operation) {
	place := e.intake.place(o.lane, o.class)
	q := &e.queues[place]
	q.left++
	if o.marks&roomless != 0 {
		e.endRoomWait(o)
	}
	if q.n > 0 {
		e.letIn(place)
	}
	if len(e.pendingMarks) > 0 {
		e.seePending()
	}
}

// retire records the end of an operation and puts it into the window. mu is held.
func (e *engine) retire(o *Operation, status Status, err error, now int64) {
	o.status, o.err, o.finished = status, err, now
	e.outcomes[status.bit()]++
	if e.onDone == nil {
		if o.done != nil || len(e.flushes) > 0 || o.marks&(awaitedOwn|grouped) != 0 {
			e.answer(o)
		}
	} else {
		e.telling++
		o.marks |= untold
		s := o.snapshot()
		s.Item = o.body.item()
		e.out.done = append(e.out.done, told{o, s, e.onDone})
	}
	if status == StatusSucceeded {
		o.body.discard()
	}
	e.window.add(o)
	e.sweep(now)
}

// answer ends the waits for an operation that has ended. mu is held.
func (e *engine) answer(o *Operation) {
	if o.done != nil {
		e.out.close(o.done)
	}
	if g := groupOf(o); g != nil {
		g.ended(o)
	}
	if o.marks&awaitedOwn != 0 {
		e.endWaits(e.awaitedBy(o))
		delete(e.awaited, o)
	}
	e.flushes = slices.DeleteFunc(e.flushes, func(f *flush) bool {
		over := f.ended(o)
		if over {
			e.out.ends = append(e.out.ends, f.done)
		}
		return over
	})
}

// sweep evicts what the window need not show any more. mu is held.
func (e *engine) sweep(now int64) {
	for o := e.window.evict(now); o != nil; o = e.window.evict(now) {
		e.forget(o, now)
	}
	if e.window.maxAge == 0 || e.sweeper.armed {
		return
	}
	if oldest, ok := e.window.oldest(); ok {
		// Reading sweeps as well, so where no signal is waited to go, a busy
		// window has a few dozen sweeps per MaxAge, not one per operation.
		at := later(oldest, e.window.maxAge)
		if !e.ruled {
			at = max(at, later(e.sweeper.last, e.window.maxAge/64))
		}
		e.sweeper.set(e.clock, at, e.tidy)
	}
}

// tidy is the sweeper's alarm.
func (e *engine) tidy() {
	e.mu.Lock()
	now := e.clock.now()
	e.sweeper.armed, e.sweeper.last = false, now
	e.sweep(now)
	e.unlock()
}

// forget drops an operation that has left the window. mu is held.
func (e *engine) forget(o *Operation, now int64) {
	e.index.remove(o)
	if o.status != StatusSucceeded {
		o.body.discard() // has been shown until now
	}
	if o.marks&watched == 0 {
		o.body.forget()
	}
	if len(e.final) > 0 {
		e.finalizing++
		e.out.final = append(e.out.final, told{o, o.snapshot(), e.final})
	}
	e.echoes.add(o, e.ledger.evictSignals(o, e.keepsSignals && e.finalized, &e.out.after), now)
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
