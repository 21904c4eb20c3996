package molecules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// TriggerOptions configure a [Trigger]. The zero value is the default.
type TriggerOptions struct {
	// Name tells triggers apart: it is the Source of the signals that the
	// callback raises. "" means "trigger".
	Name string
	// Order says which signals wait for each other; 0 is [OrderNone].
	Order Order
	// MaxConcurrency is how many callbacks run at once; 0 means 16. With
	// [OrderSerial] it is 1.
	MaxConcurrency int
	// MaxQueued is how many signals may wait for their callback; 0 means 1024.
	// One that comes when there are as many is dropped: it is counted as
	// Rejected, and [SignalTriggerDropped] is raised.
	MaxQueued int
	// MaxTracked is how many finished callbacks are still shown; 0 means 200,
	// negative none.
	MaxTracked int
	// MaxAge is how long; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// OnError, if not nil, is called when a callback has failed, after
	// [SignalTriggerFailed] was raised, on the goroutine of the callback. It is
	// not called for one that was cancelled.
	OnError func(core.Signal, error)
}

// A Trigger calls a function, in the background, for each signal that matches a
// pattern: so one atom's signal starts another, or a molecule. Make one with
// [NewTrigger]. It listens from then on, and the sink keeps it alive, until it is
// drained or closed; while nothing runs it owns no goroutine. All methods are safe
// for concurrent use, from the callback and from handlers as well.
//
// Each call is an operation, with the key of the signal.
type Trigger struct {
	*reactor[core.Signal]
	fn      func(context.Context, core.Signal) error
	onError func(core.Signal, error)
}

var _ core.Inspector = (*Trigger)(nil)

// NewTrigger makes a trigger that calls fn for each signal matching pattern that is
// raised on sink from now on, or says what is wrong. It starts nothing. What fn
// raises with [core.Operation.Because] or [core.Sink.Because] of its signal cannot
// set off an endless loop; what it raises through its operation never comes back
// to it.
func NewTrigger(sink *core.Sink, pattern string, fn func(context.Context, core.Signal) error, opts TriggerOptions) (*Trigger, error) {
	switch {
	case sink == nil:
		return nil, errors.New("molecules: there must be a sink, not nil, whose signals the trigger reacts to")
	case matchesNothing(pattern):
		return nil, fmt.Errorf("molecules: the pattern of the trigger is %q, which no signal matches", pattern)
	case fn == nil:
		return nil, errors.New("molecules: there must be a function for the trigger to call, not nil")
	}
	s := settings{opts.Name, opts.Order, opts.MaxConcurrency, opts.MaxQueued, opts.MaxTracked, opts.MaxAge}
	if s.name == "" {
		s.name = "trigger"
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	t := &Trigger{fn: fn, onError: opts.OnError}
	var err error
	if t.reactor, err = newReactor(sink, func(s core.Signal) string { return s.Key }, t.run, s); err != nil {
		return nil, err
	}
	t.listen(pattern, t.trigger)
	return t, nil
}

// trigger queues a signal, on the goroutine that raises it.
func (t *Trigger) trigger(s core.Signal) {
	if e, ok := s.Payload().(TriggerEvent); ok && e.by == t || t.own(s) {
		return
	}
	if _, err := t.coordinator.TryEnqueue(s); err != nil && err != core.ErrClosed {
		kindTriggerDropped.Raise(t.sink.Because(s), s.Key, TriggerEvent{Trigger: t.Name(), Err: err, by: t})
	}
}

// run is the work of the coordinator.
func (t *Trigger) run(ctx context.Context, s core.Signal) (err error) {
	op := core.OperationFrom(ctx)
	op.SetKey(s.Key)
	defer func() {
		if err == nil || ctx.Err() != nil {
			return
		}
		if t.onError != nil {
			defer t.onError(s, err) // after the signal, even if a handler of it ends the goroutine
		}
		kindTriggerFailed.Raise(op.Because(s), s.Key, TriggerEvent{Trigger: t.Name(), Err: err, by: t})
	}()
	guard(&err, func() { op.Because(s).Raise(core.SignalPanic) }, func() error { return t.fn(ctx, s) })
	return err
}
