package core

import (
	"context"
	"errors"
	"runtime/debug"
)

// A Handler reacts to a signal in the background, as an operation of a
// [Dispatcher] or a [Processor]. The context is that operation's: [OperationFrom]
// finds it, with the name of the signal as its Key, and it ends when the operation
// is cancelled. An error or a panic makes the operation failed.
//
// What the handler raises through its operation never comes back to the same
// Dispatcher or Processor. What it raises on a sink is a signal like any other:
// raised Because(s), it is bounded by [Propagation]; two handlers that raise what
// the other handles, and do not name the cause, go on for ever.
type Handler func(ctx context.Context, s Signal) error

// call calls the handler. That it panicked is raised as caused by the signal, so
// that handlers which panic on each other's panics come to an end.
func (h Handler) call(ctx context.Context, s Signal) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
			OperationFrom(ctx).Because(s).Raise(SignalPanic)
		}
	}()
	return h(ctx, s)
}

var (
	errNoHandler   = errors.New("core: there must be a handler, not a nil function")
	errSignalLanes = errors.New("core: Options.Lanes are for coordinators: signals that are dispatched or processed have no lanes")
)

// newReactor makes the coordinator of signals behind a Dispatcher or a Processor.
func newReactor(keyed bool, work Work[Signal], opts Options) (*Coordinator[Signal], error) {
	switch {
	case opts.StopOnError:
		return nil, errStopOnError
	case len(opts.Lanes) > 0:
		return nil, errSignalLanes
	}
	opts.DropOldest = true
	e, err := newEngine(opts, keyed)
	if err != nil {
		return nil, err
	}
	e.quiet = true
	name := func(s Signal) string { return s.Name }
	return &Coordinator[Signal]{e, work, name, e.front()}, nil
}

// react queues a signal, unless an operation of c has raised it. What is not
// accepted is counted.
func react(c *Coordinator[Signal], s Signal) {
	if !c.raised(s) {
		c.TryEnqueue(s)
	}
}

// raised reports whether an operation of this engine has raised s.
func (e *engine) raised(s Signal) bool {
	if s.Operation == 0 || s.Source != e.name {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.index.get(s.Operation) != nil
}

// announces reports whether operations raise lifecycle signals. Those that handle
// signals do not: two dispatchers that listen to everything on one sink would have
// each other's operations to handle for ever.
func (e *engine) announces() bool { return !e.quiet && e.sink.names.listening.Load() }
