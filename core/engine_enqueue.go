package core

import (
	"cmp"
	"context"
	"runtime"
	"runtime/trace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// enqueue gives an operation to the engine. It waits for room only if wait is set.
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
	o.engine, o.sched.Lane, o.sched.Class, o.sched.Value = e, d.lane, d.class, d.cost
	if o.base == nil {
		o.base = baseOf(ctx, time.Time{})
	}
	if trace.IsEnabled() {
		o.base = e.traceOf(ctx, o.base)
	}
	o.sched.Enqueued = e.clock.Now()
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) {
		e.lockFresh() // when operations leave the window, their signals leave too
		e.mu.Unlock()
		if err := e.refusal(o.sched.Lane, o.sched.Class, o.sched.Enqueued); err != nil {
			o.traceEnd("rejected")
			return e.reject(err)
		}
	}
	err := e.intake.offer(o)
	if err == ErrFull {
		err = e.enqueueFull(ctx, o, wait && !e.opts.DropOldest)
	}
	if err != nil {
		o.traceEnd("rejected")
		return e.reject(err)
	}
	e.wakeForArrival()
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) { // the signal came after the check above: its turnAway may have missed o
		e.wake()
	}
	if trace.IsEnabled() {
		e.tracePending(o)
	}
	if e.watchesPending.Load() {
		e.mu.Lock()
		e.seePending()
		e.unlock()
	}
	return nil
}

// tracePending logs why an operation that was accepted does not start.
func (e *engine) tracePending(o *Operation) {
	t := o.traced()
	if t == nil {
		return
	}
	e.lockFresh()
	var why string
	switch {
	case o.status() != StatusPending:
	case e.paused:
		why = "the coordinator is paused"
	case e.full():
		why = "all slots are taken"
	case e.ruled && e.defers(o.sched.Lane, o.sched.Class):
		why = "a signal defers it"
	case !e.scheduler.KeyFits(&o.sched):
		why = "its key is busy"
	case e.scheduler.NextTokens(o.sched.Class, e.clock.Now()) > 0:
		why = "its class has no tokens"
	case !e.scheduler.Fits(&o.sched):
		why = "its lane or its class is full"
	case e.scheduler.Len() > 1:
		why = "other operations go first"
	}
	if why != "" {
		t.waits = true
		trace.Log(t.holder, "waits", why)
	}
	e.mu.Unlock()
}

// reject counts an item that was not accepted because of err, and returns the error for
// the caller.
func (e *engine) reject(err error) error {
	in := &e.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rejected++
	switch {
	case in.closed: // is checked before anything else
		return e.errClosed
	case err == ErrFull:
		return e.errFull
	}
	return err
}

// enqueueFull continues enqueue when the queue seems to be full.
func (e *engine) enqueueFull(ctx context.Context, o *Operation, wait bool) error {
	beyond := wait && !e.ofRun && e.isOwn(ctx)
	if wait && !beyond {
		e.yieldForRoom(o)
	}
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
		if err = e.unwelcome(o); err != nil { // since the checks of the caller
			break
		}
		settled = make(chan struct{})
		o.done = settled
		e.waitForRoom(o)
		e.wakeLocked() // the operation may be able to start
	default:
		err = e.squeeze(o)
	}
	e.unlock()
	if settled == nil {
		return err
	}
	if trace.IsEnabled() {
		defer trace.StartRegion(ctx, e.name+": room").End()
	}
	if err := (awaited{engine: e, room: o}).wait(ctx, settled); err != nil {
		e.mu.Lock()
		defer e.unlock()
		if e.giveUpRoom(o) {
			e.wakeLocked() // the next operation of its key may be able to start
			return err
		}
	}
	return o.roomError()
}

// roomError returns nil if an operation that has waited for room was accepted, or why it was not.
func (o *Operation) roomError() error {
	if o.owner.ID != 0 {
		return nil
	}
	return cmp.Or(o.err, ErrClosed)
}

// unwelcome returns why an operation must not wait for room, or nil. mu is held.
func (e *engine) unwelcome(o *Operation) error {
	if g := groupOf(o); g != nil && (g.halted != nil || g.ctx.Err() != nil) {
		return cmp.Or(g.halted, context.Cause(g.ctx))
	}
	if e.ruled && e.refuses(o.sched.Lane, o.sched.Class) {
		return e.refusal(o.sched.Lane, o.sched.Class, e.clock.Now())
	}
	return nil
}

// turnAway refuses what waits while a signal matches CancelOn: operations that wait for room, and pending ones
// unless the coordinator is paused. It reports whether there were any. mu is held.
func (e *engine) turnAway(now int64) (some bool) {
	if !e.refusing() {
		return false
	}
	e.collect()
	e.sweep(now) // when operations leave the window, their signals leave too
	waiting := operationsOf(e.scheduler.All())
	slices.SortFunc(waiting, byID) // first come those that wait for room, so that none is accepted when the others go
	for _, o := range waiting {
		if e.paused && o.sched.Flags&roomless == 0 || !e.refuses(o.sched.Lane, o.sched.Class) {
			continue
		}
		if err := e.refusal(o.sched.Lane, o.sched.Class, now); err != nil {
			e.endUnstarted(o, StatusRefused, err, now)
			some = true
		}
	}
	return some
}

// endUnstarted ends a pending operation, or a wait for room with that error. mu is held.
func (e *engine) endUnstarted(o *Operation, status Status, err error, now int64) {
	if o.sched.Flags&roomless == 0 {
		e.withdraw(o, status, err, now)
		return
	}
	o.err = err
	e.giveUpRoom(o)
	e.wakeLocked() // the next operation of its key may be able to start
}

// acceptBeyond accepts an operation without room. mu is held, and the intake is open.
func (e *engine) acceptBeyond(o *Operation) {
	e.intake.mu.Lock()
	e.intake.accept(o, e.intake.room(o))
	e.intake.mu.Unlock()
}

// squeeze starts all that can start. Then it accepts an operation if there is room, if the
// operation can start, or in place of the oldest. mu is held.
func (e *engine) squeeze(o *Operation) error {
	now := e.clock.Now()
	e.waitForRoom(o)
	e.startAll(now)
	if !e.giveUpRoom(o) {
		return o.roomError()
	}
	if !e.opts.DropOldest {
		return ErrFull
	}
	oldest := e.oldest(o.sched.Lane, o.sched.Class)
	if oldest == nil {
		return ErrFull
	}
	e.acceptBeyond(o)
	e.collect() // before withdraw: if both have the same key, the key keeps its turn
	e.withdraw(oldest, StatusDropped, ErrDropped, now)
	return nil
}

// oldest returns the operation of a lane and class that has been pending longest, or nil. mu is
// held. Ids ascend, so each operation is passed only once.
func (e *engine) oldest(lane, class uint8) *Operation {
	e.collect()
	q := &e.queues[e.intake.place(lane, class)]
	for id, o := range e.index.From(max(1, q.oldest)) {
		if o.sched.Lane == lane && o.sched.Class == class && o.status() == StatusPending {
			q.oldest = id
			return o
		}
	}
	q.oldest = e.index.Newest() + 1
	return nil
}

// door is where items enter: a lane, perhaps a class, and what the items cost. If there is no such lane or class,
// it holds the error.
type door struct {
	lane, class uint8 // 0: no class
	cost        int64
	err         error
}

// inLane returns the door to the lane of that name, for items of the same class.
func (d door) inLane(e *engine, name string) door {
	i, err := find(e.made().opts.Lanes, name, ErrUnknownLane, e.name)
	return door{uint8(i), d.class, d.cost, cmp.Or(d.err, err)}
}

// inClass returns the door for items of the class of that name, to the same lane.
func (d door) inClass(e *engine, name string) door {
	i, err := find(e.made().opts.Classes, name, ErrUnknownClass, e.name)
	return door{d.lane, uint8(1 + i), d.cost, cmp.Or(d.err, err)}
}

// costing returns the door for items that cost n.
func (d door) costing(e *engine, n int) door {
	e.made()
	d.cost, d.err = int64(n), cmp.Or(d.err, checkCost(int64(n)))
	return d
}

// front is the door for items that name no lane.
func (e *engine) front() door {
	if d := (door{}).inLane(e, "normal"); d.err == nil {
		return d
	}
	return door{lane: uint8(len(e.lanes) - 1)}
}

// waitingRoom is what the engine knows about the room of a class in a lane: how many
// operations have left it, and which calls of Enqueue wait for it. The scheduler has the
// waiting operations as well, and starts those that need no room. So an item that cannot
// start keeps no other item waiting. Guarded by engine.mu.
type waitingRoom struct {
	left    uint64                 // operations that are no longer pending
	oldest  OperationID            // no operation with a lower id is pending
	n       int                    // how many wait
	waiters fifo.Queue[*Operation] // in the order in which they came; an operation that is not roomless has gone
}

// waitForRoom lets an operation wait for room. When the wait is over, because it was accepted or
// the intake has ended, its channel done is closed, if it has one. mu is held.
func (e *engine) waitForRoom(o *Operation) {
	o.sched.Flags |= roomless
	q := &e.queues[e.intake.place(o.sched.Lane, o.sched.Class)]
	q.n++
	*q.waiters.Push() = o
	e.scheduler.Push(&o.sched, o.owner.Key)
}

// giveUpRoom gives up a wait for room. It returns false if the wait has ended already. mu is held.
func (e *engine) giveUpRoom(o *Operation) bool {
	if o.sched.Flags&roomless == 0 {
		return false
	}
	e.scheduler.Remove(&o.sched, e.clock.Now())
	e.endRoomWait(o)
	return true
}

// endRoomWait ends the wait of an operation that has left the scheduler. mu is held.
func (e *engine) endRoomWait(o *Operation) {
	o.sched.Flags &^= roomless
	if o.done != nil {
		e.out.close(o.done)
		o.done = nil
	}
	q := &e.queues[e.intake.place(o.sched.Lane, o.sched.Class)]
	if q.n--; q.waiters.N > 2*q.n { // rarely, because this looks at all waiters
		for range q.waiters.N {
			if o := q.take(); o.sched.Flags&roomless != 0 {
				*q.waiters.Push() = o
			}
		}
	}
}

func (q *waitingRoom) take() *Operation {
	o := *q.waiters.Get(0)
	q.waiters.Drop()
	return o
}

// letIn accepts operations that wait for that room, first come first served, until it is full. mu
// is held.
func (e *engine) letIn(place int) {
	in, q := &e.intake, &e.queues[place]
	in.mu.Lock()
	e.refresh()
	for q.n > 0 && !in.rooms[place].full() {
		if o := q.take(); o.sched.Flags&roomless != 0 {
			if err := e.unwelcome(o); err != nil {
				e.endUnstarted(o, StatusRefused, err, 0)
				continue
			}
			e.giveUpRoom(o)
			in.accept(o, &in.rooms[place])
		}
	}
	in.mu.Unlock()
	if in.fresh.Load() {
		e.wakeForArrival()
	}
}

// admit accepts an operation that waits for room, because it leaves the queue at once. If other
// operations have arrived, they may go first: then admit collects them and returns false. mu is
// held.
func (e *engine) admit(o *Operation) bool {
	in := &e.intake
	in.mu.Lock()
	first := in.arrived.Len() == 0
	if first {
		in.number(o, in.room(o))
		e.index.Put(o.owner.ID, o)
	}
	in.mu.Unlock()
	if !first { // no other arrival may come between
		e.collect()
	}
	return first
}

// closeIntake ends the intake, and ends the waits for room with [ErrClosed]. It reports whether the
// intake was open. mu is held.
func (e *engine) closeIntake() (first bool) {
	e.intake.mu.Lock()
	first = !e.intake.closed
	e.intake.closed = true
	e.intake.mu.Unlock()
	for _, o := range operationsOf(e.scheduler.All()) {
		e.giveUpRoom(o)
	}
	return first
}

// pendingIn is the number of pending operations of a class in a lane. mu and the intake's lock are
// held.
func (e *engine) pendingIn(lane, class int) int {
	place := e.intake.place(uint8(lane), uint8(class))
	return int(e.intake.rooms[place].accepted - e.queues[place].left)
}

// seePending compares the number of pending operations with the watermarks. mu is held.
func (e *engine) seePending() {
	e.collect()
	for _, w := range e.pendingMarks.All {
		if w != nil {
			e.seeMark(w)
		}
	}
}

func (e *engine) seeMark(w *hook.Watermark) {
	if w.See(e.scheduler.Pending()) {
		e.out.after.Tell(w)
	}
}

// refresh tells the intake how much room there is. Both locks are held.
func (e *engine) refresh() {
	for i := range e.queues {
		e.intake.rooms[i].left = e.queues[i].left
	}
}

// yields says whether yields pay in this process at this time. If two in a row are long, they hit upon other work
// of the program. Then nobody yields for four times as long.
type yields struct {
	long  atomic.Bool  // the last yield was long
	until atomic.Int64 // when yields may pay again
}

var (
	allYields  yields
	yieldClock = clock.New()
)

func (y *yields) pay(now int64) bool { return now >= y.until.Load() }

// note records a yield for a queue of that length.
func (y *yields) note(start, end int64, queue uint64) {
	if long := end-start > int64(max(1, queue))*int64(longYield); y.long.Swap(long) && long {
		y.until.Store(end + 4*(end-start))
	}
}

const (
	yieldRoom = 256                   // the longest queue for which Enqueue yields
	longYield = 30 * time.Microsecond // for each place in the queue: a longer yield is long
)

// yieldForRoom lets others run, in case a worker makes room in a short queue meanwhile. That costs less
// than to wait for room and to be woken.
func (e *engine) yieldForRoom(o *Operation) {
	limit := e.intake.rooms[e.intake.place(o.sched.Lane, o.sched.Class)].limit
	if start := yieldClock.Now(); limit <= yieldRoom && allYields.pay(start) {
		runtime.Gosched()
		allYields.note(start, yieldClock.Now(), limit)
	}
}
