package core

import (
	"cmp"
	"context"
	"errors"
)

// A Handler reacts to a signal in the background, as an operation of a
// [Dispatcher] or a [Processor]. The context is that operation's: [OperationFrom]
// finds it, with the name of the signal as its Key, and it ends when the operation
// is cancelled. An error or a panic makes the operation failed.
//
// What the handler raises through its operation never comes back to the same
// Dispatcher or Processor, and is caused by the signal, as are items that it enqueues with
// its context; see [CausedBy]. So handlers that set each other off come to an end; see
// [Propagation]. What it raises on a sink is a signal like any other: if two handlers raise
// there what the other handles, and do not name the cause, they go on for ever.
type Handler func(ctx context.Context, s Signal) error

// call calls the handler.
func (h Handler) call(ctx context.Context, s Signal) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: stackTrace()}
			OperationFrom(ctx).Raise(SignalPanicked)
		}
	}()
	return h(ctx, s)
}

// newReactor makes the coordinator of signals behind a Dispatcher or a Processor.
func newReactor(keyed bool, work Work[Signal], opts Options) (*Coordinator[Signal], error) {
	if len(opts.Lanes)+len(opts.Classes) > 0 {
		return nil, errors.New("core: Options.Lanes and Classes are for coordinators, not for signals that are dispatched or processed")
	}
	opts.DropOldest = true
	e, err := newEngine(opts, keyed)
	if err != nil {
		return nil, err
	}
	e.quiet = true
	name := func(s Signal) string { return s.Name }
	return coordinatorOf(e, name, work), nil
}

// react queues a signal, unless an operation of c has raised it. What is not
// accepted is counted.
func react(c *Coordinator[Signal], s Signal) {
	if !c.raised(s) {
		c.TryEnqueue(CausedBy(context.Background(), s), s)
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

// A Processor handles every signal it is given in the background, such as sending
// it to a collector of logs. Its Process is given signals as [Options.OnSignal] of
// a coordinator, as a handler of [Sink.Subscribe], or both; it never holds up
// whoever raises them. See [Dispatcher] for handlers by pattern.
//
// It is a coordinator of signals: they are started in the order in which they came,
// [Options.MaxConcurrency] of them at once, by default 4, so that with 1 they are
// handled one after the other. While [Options.MaxQueued] signals wait, by default
// 1000, each further one drops the one that has waited longest, and [Stats] says
// how many were. Like any coordinator it shows its operations, whose Key is the
// name of the signal, owns no goroutine while idle, and is brought to an end by
// Drain, which handles what waits, or Close, which accounts for it as cancelled.
//
// All methods are safe for concurrent use, from the handler as well. Those of the zero
// value panic: make one with [NewProcessor].
type Processor struct {
	Control
	signals *Coordinator[Signal]
}

var _ Inspector = (*Processor)(nil)

// NewProcessor makes a processor, or says what is wrong with the options. The
// options are a coordinator's, except for the defaults of Name, "processor", of
// MaxConcurrency and of MaxQueued, that DropOldest is always on, and that Lanes,
// Classes and MaxPerKey are not accepted. The operations raise their signals on [Options.Sink],
// but not [SignalStarted] and [SignalStopped]; it may be the sink the processor
// listens to.
func NewProcessor(h Handler, opts Options) (*Processor, error) {
	if h == nil {
		return nil, errors.New("core: there must be a handler, not a nil function")
	}
	opts.Name = cmp.Or(opts.Name, "processor")
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, 4)
	opts.MaxQueued = cmp.Or(opts.MaxQueued, 1000)
	c, err := newReactor(false, h.call, opts)
	if err != nil {
		return nil, err
	}
	return &Processor{c.Control, c}, nil
}

// Process queues a signal for the handler and returns at once. One that an
// operation of this processor has raised is not queued. After Complete, Drain or
// Close, and while a signal matches [Options.CancelOn], it is counted as rejected.
func (p *Processor) Process(s Signal) {
	p.made()
	react(p.signals, s)
}
