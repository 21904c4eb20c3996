// This file decides how items become operations.

package core

import "context"

// Work is what a coordinator does with an item. The context has the [Operation], and the
// values of the context that was passed to Enqueue. It ends when the operation is
// cancelled or times out, not when the context of Enqueue ends. An error makes the
// operation failed, and so does a panic, as a [PanicError].
type Work[T any] func(ctx context.Context, item T) error

// An Enqueuer has the methods of a coordinator that a producer needs.
type Enqueuer[T any] interface {
	Enqueue(ctx context.Context, item T) (OperationID, error)
	TryEnqueue(ctx context.Context, item T) (OperationID, error)
}

// A Coordinator runs one function, the body, for each item. It runs a bounded number of
// operations at once. It remembers operations for a while: what they stored, which
// signals they raised, how they ended. Items start in the order in which they were
// enqueued. Keys, lanes and classes, if there are any, change that order.
//
// Its [Control] has the methods that do not depend on the type of the items: Operations,
// Lookup, Explain, Count, Stats, Cancel, Pin, Pause, Drain, Close and others.
//
// An idle coordinator owns no goroutine and needs no closing. There is one exception: a
// coordinator with CancelOn, DeferOn, ResumeOn or DrainOn on a shared sink stays in memory
// until it is drained or closed. All methods are safe for concurrent use, from bodies and
// from handlers as well. The methods of the zero value panic: make a Coordinator with
// [NewCoordinator] or [NewKeyedCoordinator].
type Coordinator[T any] struct {
	Control
	source[T, struct{}]
}

var (
	_ Inspector     = (*Coordinator[int])(nil)
	_ Enqueuer[int] = (*Coordinator[int])(nil)
)

// NewCoordinator makes a coordinator, or says what is wrong with the options.
func NewCoordinator[T any](work Work[T], opts Options) (*Coordinator[T], error) {
	return newCoordinator(nil, work, opts)
}

// NewKeyedCoordinator makes a coordinator that runs at most [Options.MaxPerKey]
// operations of one key at once, by default one. With one, the items of a key run in the
// order in which they were enqueued. Keys take turns: a key with many items, or with slow
// items, does not delay another key. Keys without operations cost nothing.
//
// An item whose key is "" has no key: it has no order, and MaxPerKey does not limit it. It
// takes its turn like an item with a key that no other item has.
//
// Enqueue calls key once for each item, on the caller's goroutine. The result is the Key
// of the operation, and of the signals that it raises.
func NewKeyedCoordinator[T any, K ~string](key func(T) K, work Work[T], opts Options) (*Coordinator[T], error) {
	text, err := keyText(key)
	if err != nil {
		return nil, err
	}
	return newCoordinator(text, work, opts)
}

// keyText returns a function that gives the result of key as a string.
func keyText[T any, K ~string](key func(T) K) (func(T) string, error) {
	if key == nil {
		return nil, errNoKey
	}
	if text, ok := any(key).(func(T) string); ok {
		return text, nil
	}
	return func(item T) string { return string(key(item)) }, nil
}

func newCoordinator[T any](key func(T) string, work Work[T], opts Options) (*Coordinator[T], error) {
	if work == nil {
		return nil, errNoWork
	}
	e, err := newEngine(opts, key != nil)
	if err != nil {
		return nil, err
	}
	return coordinatorOf(e, key, work), nil
}

func coordinatorOf[T any](e *engine, key func(T) string, work Work[T]) *Coordinator[T] {
	e.bodies = ResultWork[T, struct{}](func(ctx context.Context, item T) (struct{}, error) { return struct{}{}, work(ctx, item) })
	return &Coordinator[T]{Control{e}, source[T, struct{}]{e, key, e.front()}}
}

// Lane returns a view of the same coordinator. Enqueue, TryEnqueue, Submit and Do of the view
// put items into that lane, and into the class of c; so do its groups. They return
// [ErrUnknownLane] if the coordinator has no such lane. Items that are enqueued without
// Lane go into the lane "normal", or into the last lane if there is no "normal".
//
//ephemeral:lane {name}
//ephemeral:view
func (c *Coordinator[T]) Lane(name string) *Coordinator[T] {
	view := *c
	view.door = c.door.inLane(c.engine, name)
	return &view
}

// Class returns a view of the same coordinator. Enqueue, TryEnqueue, Submit and Do of the
// view put items into that class, and into the lane of c; so do its groups. They return
// [ErrUnknownClass] if the coordinator has no such class. See [Options.Classes].
//
//ephemeral:class {name}
//ephemeral:view
func (c *Coordinator[T]) Class(name string) *Coordinator[T] {
	view := *c
	view.door = c.door.inClass(c.engine, name)
	return &view
}

// Cost returns a view of the same coordinator. Items that it enqueues cost n, which counts for
// the CostRate of their class and for [Options.KeyCostRate]; without these rates it has no
// effect. Otherwise items cost 0. Enqueue and the others return an error if n is negative or more than 2^40. Cost
// allocates nothing if the view is used at once, as in
//
//	c.Cost(len(text)).Enqueue(ctx, text)
//
//ephemeral:view
func (c *Coordinator[T]) Cost(n int) *Coordinator[T] {
	view := *c
	view.door = c.door.costing(c.engine, n)
	return &view
}

// source is where the items of a coordinator come in, with results or without. The names of its type
// parameters are those of the coordinators, because their pages show its methods.
type source[T, R any] struct {
	to   *engine
	key  func(T) string // nil: none
	door door
}

func (s *source[T, R]) newTask(in T, m marks) *task[T, R] {
	t := &task[T, R]{in: in}
	t.Operation.body, t.Operation.sched.Flags = t, m
	if s.key != nil {
		t.Operation.owner.Key = s.key(in)
	}
	return t
}

// submit enqueues an item and returns the future that keeps its result.
func (s *source[T, R]) submit(ctx context.Context, item T) (*Future[R], error) {
	t := s.newTask(item, watched)
	if err := s.to.enqueue(ctx, &t.Operation, s.door, true); err != nil {
		return nil, err
	}
	return &Future[R]{&t.Operation, &t.out}, nil
}

// task is an operation together with its item and its result: the one allocation of an
// Enqueue.
type task[T, R any] struct {
	Operation Operation
	out       R // written by the body; guarded by engine.mu after the body has returned
	in        T
}

func (t *task[T, R]) run(ctx context.Context) (err error) {
	t.out, err = t.Operation.engine.bodies.(ResultWork[T, R])(ctx, t.in)
	return err
}

func (t *task[T, R]) item() any { return t.in }

func (t *task[T, R]) discard() { t.in = *new(T) }

func (t *task[T, R]) forget() { t.out = *new(R) }

// Enqueue gives an item to the coordinator and returns the id of its operation,
// without waiting for it to run. If the queue is full ([Options.MaxQueued]), it waits for
// room, first come first served, or until the item can start. Items that cannot start,
// because of their key, lane or class, do not keep it waiting. If ctx ends first, it
// returns the cause of ctx. It returns [ErrClosed] after the intake has ended (Complete,
// Drain, Stop, Close or DrainOn), and a [RefusedError] while a signal matches CancelOn.
//
// Inside an operation of this coordinator Enqueue never waits. When the queue is full,
// the item is accepted beyond MaxQueued and counted in [Stats].Overflow. So work may
// enqueue more work, but nothing bounds how much. Use TryEnqueue to keep the queue bounded.
func (s *source[T, R]) Enqueue(ctx context.Context, item T) (OperationID, error) {
	t := s.newTask(item, 0)
	err := s.to.enqueue(ctx, &t.Operation, s.door, true)
	return t.Operation.owner.ID, err
}

// TryEnqueue is Enqueue without waiting: it returns [ErrFull] when there is no room.
func (s *source[T, R]) TryEnqueue(ctx context.Context, item T) (OperationID, error) {
	t := s.newTask(item, 0)
	err := s.to.enqueue(ctx, &t.Operation, s.door, false)
	return t.Operation.owner.ID, err
}

// Submit is Enqueue for callers that wait later. The [Future] keeps the outcome, even after the
// operation has left the window. Waiting by id works only while the operation is in the window.
// To wait for a set of items, use a [Group].
func (c *Coordinator[T]) Submit(ctx context.Context, item T) (*Future[struct{}], error) {
	return c.submit(ctx, item)
}

// Do enqueues an item, waits until its operation is finished, and returns the error of
// the body, or the reason why the body did not run. When ctx ends, Do cancels the
// operation with the cause of ctx, and returns that cause without waiting for the body.
//
// While a body of this coordinator waits in Do with its own context, it is suspended, as
// in [Operation.Suspend]. A body of another coordinator keeps its slot. Do returns
// [ErrWouldDeadlock] in three cases: a body of this coordinator calls Do with a context
// that is not made from its own; the item has the key of the body's operation and
// [Options.MaxPerKey] is 1; or operations wait in a circle, each for a key that another
// operation of the circle has (a suspended operation keeps its key). Circles over several
// coordinators are not found; Explain shows them. In a body that passes its own context, Do makes four
// allocations, and five for another coordinator, if there is no [Options.Timeout].
//
// Nothing bounds how deep bodies call Do on their own coordinator. A body that does so without end
// suspends one operation after the other until the memory is used up. The end of the first operation's
// context ends all of them: set Options.Timeout, or call Cancel, Abort or Close.
func (c *Coordinator[T]) Do(ctx context.Context, item T) error {
	return c.engine.do(ctx, &c.newTask(item, 0).Operation, c.door)
}

// Wait waits until an operation is finished and returns the error of its body, or the
// reason why the body did not run. It returns [ErrUnknown] if the id is not in the
// window: to wait after that, use Submit. If ctx ends first, Wait returns the cause of
// ctx, and the operation goes on. A body that calls Wait is suspended, or gets
// [ErrWouldDeadlock], as in Do.
func (c *Coordinator[T]) Wait(ctx context.Context, id OperationID) error {
	_, err := c.engine.wait(ctx, id)
	return err
}

// ResultWork is [Work] that has a result.
type ResultWork[T, R any] func(ctx context.Context, in T) (R, error)
