// This file decides who gets room in a queue: which items wait for it, in which order they get it, and when
// they give up.

package core

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// room is the room for the pending operations of a class in a lane. What was accepted is guarded by intake.mu,
// and the rest by engine.mu. The engine counts those that have left; the intake has the count of its last
// refresh. So a room may look full when it is not: then the engine is asked.
type room struct {
	sched.Room
	oldest OperationID // no operation with a lower id is pending
}

// waitForRoom lets an operation wait for room. When the wait is over, because it was accepted or
// the intake has ended, its channel done is closed, if it has one. mu is held.
func (e *engine) waitForRoom(o *Operation) {
	e.intake.room(o).Wait(&o.sched)
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
	if o.done != nil {
		e.out.close(o.done)
		o.done = nil
	}
	e.intake.room(o).End(&o.sched)
}

// letIn accepts operations that wait for r, first come first served, until it is full. mu
// is held.
func (e *engine) letIn(r *room) {
	in := &e.intake
	in.mu.Lock()
	e.refresh()
	for item := r.Take(); item != nil; item = r.Take() {
		o := operationOf(item)
		if err := e.unwelcome(o); err != nil {
			e.endUnstarted(o, StatusRefused, err, 0)
			continue
		}
		e.giveUpRoom(o)
		in.accept(o, r)
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

// oldest returns the operation of a lane and class that has been pending longest, or nil. mu is
// held. Ids ascend, so each operation is passed only once.
func (e *engine) oldest(lane, class uint8) *Operation {
	e.collect()
	r := e.intake.at(lane, class)
	for id, o := range e.index.From(max(1, r.oldest)) {
		if o.sched.Lane == lane && o.sched.Class == class && o.status() == StatusPending {
			r.oldest = id
			return o
		}
	}
	r.oldest = e.index.Newest() + 1
	return nil
}

// pendingIn is the number of pending operations of a class in a lane. mu and the intake's lock are
// held.
func (e *engine) pendingIn(lane, class int) int {
	r := e.intake.at(uint8(lane), uint8(class))
	return int(r.Accepted - r.Left)
}

// refresh tells the intake how much room there is. Both locks are held.
func (e *engine) refresh() {
	for i := range e.intake.rooms {
		r := &e.intake.rooms[i]
		r.Known = r.Left
	}
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
	limit := e.intake.room(o).Limit
	if start := yieldClock.Now(); limit <= yieldRoom && allYields.pay(start) {
		runtime.Gosched()
		allYields.note(start, yieldClock.Now(), limit)
	}
}
