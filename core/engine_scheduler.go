package core

// scheduler decides what runs next. It is a plain data structure without lock,
// goroutine or clock; the engine steps it under its own lock. The engine knows
// how many run and whether any may start; a scheduler knows in which order, and
// which pending operations must wait for others, because of their key, lane or class.
type scheduler interface {
	// push adds a pending operation.
	push(o *Operation)
	// next returns the operation to start next, of a lane that is not barred, or
	// nil if none can start. It may be asked many times and says the same.
	next(now int64, barred laneSet) *Operation
	// admits reports whether o, which is not pending yet, could start if it came
	// now, given that nothing that is pending in its lane can.
	admits(o *Operation) bool
	// earliest returns the operation of a lane that was enqueued first among
	// those that could start, or nil.
	earliest(lane uint8) *Operation
	// start takes o out of the pending ones: what next returned when it was last
	// asked, or the earliest of that one's lane.
	start(o *Operation)
	// finish says that o, which was started, has ended. Its status says whether
	// it was running or suspended.
	finish(o *Operation)
	// suspend takes the slots of its lane and class from a running operation, but
	// not its key's, so that the order within the key holds.
	suspend(o *Operation)
	// resume gives these slots back. It reports false if there is none free.
	resume(o *Operation) bool
	// remove takes a pending operation out without starting it.
	remove(o *Operation)
	// all returns the pending operations in any order.
	all() []*Operation
	// pending is the number of pending operations.
	pending() int
}

// laneSet is a set of lanes, by number.
type laneSet uint64

func (s laneSet) has(lane uint8) bool { return s>>lane&1 != 0 }

func (s laneSet) with(lane uint8) laneSet { return s | 1<<lane }

// fifo starts operations in the order they were enqueued. All are in lane 0.
type fifo struct{ opList }

func (f *fifo) admits(*Operation) bool    { return true }
func (f *fifo) earliest(uint8) *Operation { return f.head }
func (f *fifo) start(o *Operation)        { f.remove(o) }
func (f *fifo) finish(*Operation)         {}
func (f *fifo) suspend(*Operation)        {}
func (f *fifo) resume(*Operation) bool    { return true }
func (f *fifo) all() []*Operation         { return f.appendTo(nil) }
func (f *fifo) pending() int              { return f.n }
func (f *fifo) next(_ int64, barred laneSet) *Operation {
	if barred.has(0) {
		return nil
	}
	return f.head
}
