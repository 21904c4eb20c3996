package signalaware

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap puts work behind the gate. While a signal matches CancelOn, a call returns a
// [core.RefusedError]. While one matches DeferOn, a call waits until no signal does, or
// until its context ends, whose cause it then returns; because of raised signals it waits
// for MaxDefer at most. Then it does the work, on the goroutine of the caller and with its
// context; signals that are raised later do not affect it. After Complete, Drain, Stop and
// Close it returns [core.ErrClosed].
//
// The work belongs to the caller, not to the gate: MaxConcurrency does not limit it, Stats
// do not count it, and Close does not cancel it. [Gate.Calls] counts the calls. Each costs
// about as much as an operation of a coordinator. Wrap panics if g or work is nil.
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

// WrapResult is [Wrap] for work that has a result.
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

// CallStats count the calls of wrapped functions, so that at every instant
//
//	Calls = Waiting + Passed + Refused + GaveUp
type CallStats struct {
	Calls   uint64 `json:"calls"`
	Waiting int    `json:"waiting"` // at the gate, now
	Passed  uint64 `json:"passed"`  // were let through
	Refused uint64 `json:"refused"` // because of CancelOn
	GaveUp  uint64 `json:"gaveUp"`  // their context ended, or the gate was closed
	Forced  uint64 `json:"forced"`  // of Passed: in spite of DeferOn
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

// call is a call at the gate.
type call struct{ forced bool }

// passes is the work of the operations that calls wait for.
func passes(ctx context.Context, c *call) error {
	c.forced = core.OperationFrom(ctx).Has(core.SignalForced)
	return nil
}

// pass waits until the gate lets the caller through.
func (g *Gate[T]) pass(ctx context.Context) (err error) {
	c := new(call)
	err = core.ErrClosed // for when the context panics
	g.count(func(s *CallStats) { s.Calls++; s.Waiting++ })
	defer g.count(func(s *CallStats) {
		s.Waiting--
		switch {
		case err == nil:
			s.Passed++
			if c.forced {
				s.Forced++
			}
		case errors.As(err, new(*core.RefusedError)):
			s.Refused++
		default:
			s.GaveUp++
		}
	})
	err = g.calls.Do(ctx, c)
	return err
}

func (g *Gate[T]) count(change func(*CallStats)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.stats)
}

// Why lists the signals that would affect an item, or a call, that came now: the one
// that would refuse it, or those that it would wait for. The list is empty if there is
// none, and after Complete, Drain, Stop and Close. Why costs as much as a call; nothing
// counts it.
func (g *Gate[T]) Why() []core.Reason {
	id, err := g.calls.TryEnqueue(context.Background(), new(call))
	if r, ok := errors.AsType[*core.RefusedError](err); ok {
		return []core.Reason{{Kind: core.ReasonRefused, Signal: r.Signal, Since: r.Signal.Time}}
	}
	if errors.Is(err, core.ErrFull) { // other calls wait for the same
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
			r.Operation = 0 // the operation of the call is of no use to the caller
			reasons = append(reasons, r)
		}
	}
	return reasons
}
