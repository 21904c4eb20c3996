package signalaware

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Wrap puts work behind the gate. While a signal matches CancelOn, a call returns a
// [core.RefusedError]. While a signal matches DeferOn, a call waits; raised signals delay it for
// at most MaxDefer. If its context ends while it waits, the call returns the cause of the
// context. Otherwise it then runs work, on the goroutine of its caller and with its context.
// Signals that come later do not affect it. After Complete, Drain, Stop and Close, a call returns
// [core.ErrClosed].
//
// The gate does not control the running work: MaxConcurrency does not limit it, Stats do not
// count it, and Close does not cancel it. A call costs about as much as an operation of a
// coordinator. Wrap panics if g or work is nil.
func Wrap[T, G any](g *Gate[G], work core.Work[T]) core.Work[T] {
	if g == nil || work == nil {
		panic("signalaware: Wrap needs a gate and a function")
	}
	return func(ctx context.Context, item T) error {
		if err := g.pass(ctx); err != nil {
			return err
		}
		return work(ctx, item)
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out, G any](g *Gate[G], work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if g == nil || work == nil {
		panic("signalaware: WrapResult needs a gate and a function")
	}
	return func(ctx context.Context, in In) (Out, error) {
		if err := g.pass(ctx); err != nil {
			var none Out
			return none, err
		}
		return work(ctx, in)
	}
}

// passes is the work of the operations for which calls wait.
func passes(context.Context, struct{}) error { return nil }

// pass waits until a call may pass, or returns why it may not.
func (g *Gate[T]) pass(ctx context.Context) error { return g.calls.Do(ctx, struct{}{}) }

// Why lists the signals that would affect a new item or call: the signal that would refuse it,
// or the signals that would defer it. Without such signals, and after Complete, Drain, Stop and
// Close, the list is empty. Why costs as much as a wrapped call.
func (g *Gate[T]) Why() []core.Reason {
	id, err := g.calls.TryEnqueue(context.Background(), struct{}{})
	if r, ok := guard.As[*core.RefusedError](err); ok {
		return []core.Reason{{Kind: core.ReasonRefused, Signal: r.Signal, Since: r.Signal.Time}}
	}
	if guard.Is(err, core.ErrFull) { // other calls wait for the same signals
		for op := range g.calls.Operations(core.OperationQuery{Status: core.StatusPending}) {
			return g.reasons(op.ID)
		}
	}
	defer g.calls.Cancel(id, nil)
	return g.reasons(id)
}

// reasons lists the signals that a call waits for.
func (g *Gate[T]) reasons(id core.OperationID) (reasons []core.Reason) {
	x, _ := g.calls.Explain(id)
	for _, r := range x.Reasons {
		if r.Kind == core.ReasonRefused || r.Kind == core.ReasonDeferred {
			r.Operation = 0 // the caller cannot use the operation of the call
			reasons = append(reasons, r)
		}
	}
	return reasons
}
