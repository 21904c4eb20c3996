package core

// waitingRoom is what the engine knows of the room of a class in a lane: what has left it,
// and which Enqueues wait for it. These are in the scheduler as well, which starts what can
// start without room. So an item that cannot start keeps no other one waiting, and what is
// paid for a waiter is paid when it comes and goes. Guarded by engine.mu.
type waitingRoom struct {
	left    uint64            // operations that were pending and are not any more
	oldest  OperationID       // none with a lower id is pending
	n       int               // how many wait
	waiters queue[*Operation] // in the order in which they came; those that are not roomless have gone
}

// waitForRoom lets an operation wait for room. Its done, if any, is closed when it waits no
// more: it was accepted, or the intake has ended. mu is held.
func (e *engine) waitForRoom(o *Operation) {
	o.marks |= roomless
	q := &e.queues[e.intake.place(o.lane, o.class)]
	q.n++
	*q.waiters.push() = o
	e.scheduler.push(o)
}

// giveUpRoom ends a wait for room without room. It reports false if that has ended by now.
// mu is held.
func (e *engine) giveUpRoom(o *Operation) bool {
	if o.marks&roomless == 0 {
		return false
	}
	e.scheduler.remove(o)
	e.endRoomWait(o)
	return true
}

// endRoomWait ends the wait of an operation that the scheduler does not have any more. mu is
// held.
func (e *engine) endRoomWait(o *Operation) {
	o.marks &^= roomless
	if o.done != nil {
		e.out.close(o.done)
		o.done = nil
	}
	q := &e.queues[e.intake.place(o.lane, o.class)]
	if q.n--; q.waiters.n > 2*q.n { // rarely, because that looks at all of them
		for range q.waiters.n {
			if o := q.take(); o.marks&roomless != 0 {
				*q.waiters.push() = o
			}
		}
	}
}

func (q *waitingRoom) take() *Operation {
	o := *q.waiters.get(0)
	q.waiters.drop()
	return o
}

// letIn accepts the operations that wait for the room at that place, first come first served,
// as many as there is room for. mu is held.
func (e *engine) letIn(place int) {
	in, q := &e.intake, &e.queues[place]
	in.mu.Lock()
	e.refresh()
	for q.n > 0 && !in.rooms[place].full() {
		if o := q.take(); o.marks&roomless != 0 {
			e.giveUpRoom(o)
			in.accept(o)
		}
	}
	in.mu.Unlock()
	if in.fresh.Load() {
		e.wakeForArrival()
	}
}

// admit accepts an operation that waits for room, because it leaves the queue at once. If
// something has arrived, which may go first, it collects that and reports false. mu is held.
func (e *engine) admit(o *Operation) bool {
	in := &e.intake
	in.mu.Lock()
	first := in.arrived.n == 0
	if first {
		in.number(o)
		e.index.put(o)
	}
	in.mu.Unlock()
	if !first { // else what has come since must not come between
		e.collect()
	}
	return first
}

// closeIntake ends the intake, and the waits for room with [ErrClosed]. It reports whether it
// was open. mu is held.
func (e *engine) closeIntake() (first bool) {
	e.intake.mu.Lock()
	first = !e.intake.closed
	e.intake.closed = true
	e.intake.mu.Unlock()
	if e.scheduler.waiting > 0 {
		for _, o := range e.scheduler.all() {
			e.giveUpRoom(o)
		}
	}
	return first
}

// pendingIn is the number of pending operations of a class in a lane. mu and the intake's are
// held.
func (e *engine) pendingIn(lane, class int) int {
	place := e.intake.place(uint8(lane), uint8(class))
	return int(e.intake.rooms[place].accepted - e.queues[place].left)
}
