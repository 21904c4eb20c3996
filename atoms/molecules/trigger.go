package molecules

import (
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Trigger calls a function, in the background, for each signal that matches a pattern. Make
// one with [NewTrigger]. It listens, and its sink keeps it alive, until you call Complete,
// Drain, Stop or Close. It owns no goroutine while nothing runs. All methods are safe for
// concurrent use, also from the function and from handlers.
//
// Each call is an operation with the key of the signal. With [OrderSerial] the operation gets
// that key when it begins.
//
// A Trigger has all methods of [core.Control]. SetMaxConcurrency does not change
// [TriggerOptions.Order]. At most [TriggerOptions.MaxConcurrency] calls of one key run at the
// same time, even if SetMaxConcurrency sets more.
type Trigger struct {
	*listener
	coordinator *core.Coordinator[signals.Signal]
	fn          func(context.Context, signals.Signal) error
}

var (
	_ core.Inspector = (*Trigger)(nil)
	_ core.Lifecycle = (*Trigger)(nil)
)

// NewTrigger makes a trigger. From now on it calls fn for each signal of sink that matches
// pattern. If a parameter or an option is wrong, NewTrigger returns an error.
//
// If fn raises a signal, it should name its own signal as the cause, with
// [core.Operation.Because] or [signals.Sink.Because]: then no endless loop can begin. Signals that fn
// raises with [core.OperationFrom] and without a cause do not start the trigger again.
//
//ephemeral:pattern {pattern}
func NewTrigger(sink *signals.Sink, pattern string, fn func(context.Context, signals.Signal) error, opts TriggerOptions) (*Trigger, error) {
	switch {
	case sink == nil:
		return nil, errors.New("molecules: the sink of a trigger is nil, there must be one")
	case matchesNothing(pattern):
		return nil, fmt.Errorf("molecules: the pattern of a trigger is %q, which no signal matches", pattern)
	case fn == nil:
		return nil, fmt.Errorf("molecules: the function of the trigger on %q is nil, there must be one", pattern)
	}
	shared, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	t := &Trigger{fn: fn}
	t.coordinator = core.Must(core.NewKeyedCoordinator(shared.key, t.run, shared.coordinator(sink)))
	t.listener = &listener{Control: t.coordinator.Control}
	t.cancels = []func(){sink.Subscribe(pattern, t.trigger)}
	return t, nil
}

// trigger queues a signal, on the goroutine that raises it.
func (t *Trigger) trigger(s signals.Signal) {
	if e, ok := s.Payload().(TriggerEvent); ok && e.by == t || t.ignores(s) {
		return
	}
	if _, err := t.coordinator.TryEnqueue(context.Background(), s); err != nil && !guard.Is(err, core.ErrClosed) {
		TriggerDropped.Raise(t.Sink().Because(s), s.Key, TriggerEvent{Trigger: t.Name(), Err: err, by: t})
	}
}

// run is the work of the coordinator.
func (t *Trigger) run(ctx context.Context, s signals.Signal) (err error) {
	op := core.OperationFrom(ctx)
	op.SetKey(s.Key)
	defer func() {
		if err == nil || ctx.Err() != nil {
			return
		}
		TriggerFailed.Raise(op.Because(s), s.Key, TriggerEvent{Trigger: t.Name(), Err: err, by: t})
	}()
	recovering(&err, op.Because(s), func() error { return t.fn(ctx, s) })
	return err
}
