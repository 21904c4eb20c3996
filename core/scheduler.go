package core

// scheduler decides what runs next. It is a plain data structure without lock,
// goroutine or clock; the engine steps it under its own lock. The engine knows
// how many run and whether any may start; a scheduler knows in which order, and
// which pending operations must wait for others, because of their key or lane.
type scheduler interface {
	// push adds a pending operation.
	push(o *Operation)
	// next returns the operation to start next, or nil if none can start, and
	// changes nothing.
	next() *Operation
	// start takes o, which next returned, out of the pending ones.
	start(o *Operation)
	// finish says that o, which was started, has ended.
	finish(o *Operation)
	// remove takes a pending operation out without starting it.
	remove(o *Operation)
	// oldest returns the operation that has been pending longest, or nil.
	oldest() *Operation
	// pending is the number of pending operations.
	pending() int
}

// fifo starts operations in the order they were enqueued.
type fifo struct{ queue opList }

func (f *fifo) push(o *Operation)   { f.queue.push(o) }
func (f *fifo) next() *Operation    { return f.queue.head }
func (f *fifo) start(o *Operation)  { f.queue.remove(o) }
func (f *fifo) finish(*Operation)   {}
func (f *fifo) remove(o *Operation) { f.queue.remove(o) }
func (f *fifo) oldest() *Operation  { return f.queue.head }
func (f *fifo) pending() int        { return f.queue.n }
