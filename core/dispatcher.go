// This file decides which handlers a signal reaches, by pattern.

package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Dispatcher calls handlers for signals in the background, by pattern. Pass its method
// Dispatch as [Options.OnSignal] of a coordinator, to [signals.Sink.Subscribe], or to both. A
// dispatcher never makes the raiser of a signal wait.
//
// It is a coordinator whose items are signals and whose keys are their names. It handles
// signals of one name one at a time, in the order in which they were dispatched, and
// different names side by side. [Options.MaxConcurrency] and [Options.MaxPerKey] change
// that. While [Options.MaxQueued] signals wait, by default 1024, each further signal
// drops the one that has waited longest; [Stats].Dropped counts them. Like any
// coordinator, it shows its operations and owns no goroutine while idle. Drain handles
// the signals that wait, and Close cancels them.
//
// All methods are safe for concurrent use, from handlers as well. Those of the zero
// value panic: make one with [NewDispatcher].
type Dispatcher struct {
	Control
	signals *Coordinator[signals.Signal]

	mu        sync.Mutex
	reactions lists.List[*reaction]       // guarded by mu
	known     atomic.Pointer[[]*reaction] // snapshot of reactions, or nil; written with mu held
}

var _ Inspector = (*Dispatcher)(nil)

// reaction is a handler of a dispatcher. It uses only the pattern and the barrier of the hook,
// because a dispatcher does not call it in a delivery.
type reaction struct {
	*hook.Hook[signals.Signal]
	handler Handler
}

// NewDispatcher makes a dispatcher without handlers, or says what is wrong with the
// options. The options are a coordinator's, except that the default of Name is
// "dispatcher", that DropOldest is always on, and that Lanes and Classes are not
// accepted. The operations raise their signals on [Options.Sink], but not [signals.SignalStarted]
// and [signals.SignalStopped]. The dispatcher may handle signals of the same sink.
func NewDispatcher(opts Options) (*Dispatcher, error) {
	opts.Name = cmp.Or(opts.Name, "dispatcher")
	d := new(Dispatcher)
	c, err := newReactor(true, d.react, opts)
	if err != nil {
		return nil, err
	}
	d.Control, d.signals = c.Control, c
	return d, nil
}

// all returns the handlers in the order of registration.
func (d *Dispatcher) all() []*reaction {
	known := d.known.Load()
	if known == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		known = new(d.reactions.Snapshot())
		d.known.Store(known)
	}
	return *known
}

// Handle lets h handle the signals whose name matches pattern, until remove is called.
// All handlers that match a signal are called one after the other, in the order in which
// they were registered. If a handler fails or panics, the others are still called, and
// the errors are joined. The handlers that are registered when a signal's turn comes
// are called, not those at the time of Dispatch. An operation that is cancelled calls no further handlers.
//
// Remove waits for running calls of h. Inside a handler it does not wait; goroutines that
// a handler has started are not recognised. After remove, no call of h starts. A handler
// whose pattern matches nothing, like "", is never called. Handle panics if h is nil.
//
//ephemeral:pattern {pattern}
func (d *Dispatcher) Handle(pattern string, h Handler) (remove func()) {
	need(h != nil, "Handle needs a function")
	d.made()
	r := &reaction{hook.New[signals.Signal](glob.Compile(pattern), nil), h}
	d.mu.Lock()
	number := d.reactions.Add(r)
	d.known.Store(nil)
	d.mu.Unlock()
	return func() {
		d.mu.Lock()
		d.reactions.Remove(number)
		d.known.Store(nil)
		r.Cancel()
		d.mu.Unlock()
		if !runsOn(d.engine.number) {
			r.Wait()
		}
	}
}

// Dispatch queues a signal and returns at once. It does not queue a signal that no handler
// matches, or that an operation of this dispatcher has raised. This check compares the name
// with each pattern. After Complete, Drain or
// Close, and while [Options.CancelOn] refuses items, Dispatch only counts the signal as
// rejected.
func (d *Dispatcher) Dispatch(s signals.Signal) {
	d.made()
	if slices.ContainsFunc(d.all(), func(r *reaction) bool { return r.Pattern.Matches(s.Name) }) {
		react(d.signals, s)
	}
}

// react is the body of a dispatcher's operations.
func (d *Dispatcher) react(ctx context.Context, s signals.Signal) error {
	var errs []error
	for _, r := range d.all() {
		if !r.Pattern.Matches(s.Name) {
			continue
		}
		if OperationFrom(ctx).isCancelled() {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if err := r.call(ctx, s); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (r *reaction) call(ctx context.Context, s signals.Signal) error {
	r.Late.Add(1)
	defer r.Leave()
	if r.Cancelled.Load() != 0 {
		return nil
	}
	return r.handler.call(ctx, s)
}

// isCancelled reports whether the context has ended. It costs nothing if no code has called Done.
func (o *Operation) isCancelled() bool {
	real := (*operationContext)(o).made()
	return real != nil && real.Err() != nil
}
