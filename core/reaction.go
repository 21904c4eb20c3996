// This file decides how a signal becomes an operation.

package core

import (
	"cmp"
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Handler reacts to a signal in the background, as an operation of a [Dispatcher] or a
// [Processor]. [OperationFrom] finds that operation in the context, with the name of the
// signal as its Key. The context ends when the operation is cancelled. An error or a
// panic makes the operation failed.
//
// Signals that the handler raises through its operation never come back to the same
// Dispatcher or Processor. They are caused by the signal, and so are items that the
// handler enqueues with its context; see [signals.CausedBy]. So a loop of handlers comes to an
// end; see [signals.Propagation]. A signal that a handler raises directly on a sink has no cause,
// unless the handler names it ([signals.Sink.Because]). If such signals lead back to the handler,
// directly or through other handlers, the loop does not end: the bound of 64 nested calls
// is only for handlers of [signals.Sink.Subscribe].
type Handler func(ctx context.Context, s signals.Signal) error

// call calls the handler.
func (h Handler) call(ctx context.Context, s signals.Signal) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: stackTrace()}
			OperationFrom(ctx).Raise(SignalPanicked)
		}
	}()
	return h(ctx, s)
}

// newReactor makes the coordinator of signals behind a Dispatcher or a Processor.
func newReactor(keyed bool, work Work[signals.Signal], opts Options) (*Coordinator[signals.Signal], error) {
	if len(opts.Lanes)+len(opts.Classes) > 0 {
		return nil, errors.New("core: Options.Lanes and Classes are for coordinators, not for signals that are dispatched or processed")
	}
	opts.DropOldest = true
	e, err := newEngine(opts, keyed)
	if err != nil {
		return nil, err
	}
	e.quiet = true
	name := func(s signals.Signal) string { return s.Name }
	return coordinatorOf(e, name, work), nil
}

// react queues a signal, unless an operation of c has raised it. What is not
// accepted is counted.
func react(c *Coordinator[signals.Signal], s signals.Signal) {
	if !c.engine.raised(s) {
		c.TryEnqueue(signals.CausedBy(context.Background(), s), s)
	}
}

// A Processor calls one handler for every signal that it is given, in the background: for
// example to send it to a collector of logs. Pass its method Process as
// [Options.OnSignal] of a coordinator, to [signals.Sink.Subscribe], or to both. A processor never
// makes the raiser of a signal wait. See [Dispatcher] for handlers by pattern.
//
// It is a coordinator whose items are signals. It starts them in the order in which they
// came, [Options.MaxConcurrency] of them at once, by default 4. With 1, it handles one
// after the other. While [Options.MaxQueued] signals wait, by default 1000, each further
// signal drops the one that has waited longest; [Stats].Dropped counts them. Like any
// coordinator, it shows its operations and owns no goroutine while idle; the Key of an
// operation is the name of the signal. Drain handles the signals that wait, and Close
// cancels them.
//
// All methods are safe for concurrent use, also from the handler. The methods of the zero
// value panic: make one with [NewProcessor].
type Processor struct {
	Control
	signals *Coordinator[signals.Signal]
}

var _ Inspector = (*Processor)(nil)

// NewProcessor makes a processor, or says what is wrong with the options. The options are
// a coordinator's, with three other defaults: Name "processor", MaxConcurrency 4 and
// MaxQueued 1000. DropOldest is always on. Lanes, Classes and MaxPerKey are not accepted.
// The operations raise their signals on [Options.Sink], but not [signals.SignalStarted] and
// [signals.SignalStopped]. The processor may handle signals of the same sink.
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

// Process queues a signal for the handler and returns at once. It does not queue a signal
// that an operation of this processor has raised. After Complete, Drain or Close, and
// while [Options.CancelOn] refuses items, Process only counts the signal as rejected.
func (p *Processor) Process(s signals.Signal) {
	p.made()
	react(p.signals, s)
}
