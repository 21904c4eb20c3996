package signalaware

import (
	"context"
	"log/slog"

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
// count it, and Close does not cancel it. [Gate.Calls] counts the calls. A call costs about as
// much as an operation of a coordinator. Wrap panics if g or work is nil.
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

// CallStats count the calls of wrapped functions. At every instant
//
//	Calls = Waiting + Passed + Refused + GaveUp
type CallStats struct {
	Calls   uint64 `json:"calls"`
	Waiting int    `json:"waiting"` // calls that wait at the gate now
	Passed  uint64 `json:"passed"`  // calls whose work has run or runs
	Refused uint64 `json:"refused"` // calls refused because of CancelOn
	GaveUp  uint64 `json:"gaveUp"`  // calls whose context ended, or that came after the end of the gate
	Forced  uint64 `json:"forced"`  // calls in Passed that passed because MaxDefer was over
}

// LogValue groups the counters by their JSON names.
func (s CallStats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s CallStats) String() string { return core.StatsString(s) }

// Calls returns the counters of the calls of wrapped functions, read together.
func (g *Gate[T]) Calls() CallStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// call is a call of a wrapped function.
type call struct{ forced bool }

// passes is the work of the operations for which calls wait.
func passes(ctx context.Context, c *call) error {
	c.forced = core.OperationFrom(ctx).Has(core.SignalForced)
	return nil
}

// pass waits until a call may pass, or returns why it may not.
func (g *Gate[T]) pass(ctx context.Context) (err error) {
	c := new(call)
	err = core.ErrClosed // the error if a method of ctx panics
	g.count(func(s *CallStats) { s.Calls++; s.Waiting++ })
	refused := false
	defer g.count(func(s *CallStats) {
		s.Waiting--
		switch {
		case err == nil:
			s.Passed++
			if c.forced {
				s.Forced++
			}
		case refused:
			s.Refused++
		default:
			s.GaveUp++
		}
	})
	err = g.calls.Do(ctx, c)
	_, refused = guard.As[*core.RefusedError](err)
	return err
}

func (g *Gate[T]) count(change func(*CallStats)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.stats)
}

// Why lists the signals that would affect a new item or call: the signal that would refuse it,
// or the signals that would defer it. Without such signals, and after Complete, Drain, Stop and
// Close, the list is empty. Why costs as much as a wrapped call, but is not counted.
func (g *Gate[T]) Why() []core.Reason {
	id, err := g.calls.TryEnqueue(context.Background(), new(call))
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
