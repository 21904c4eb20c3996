package signalaware

import (
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap puts work behind the gate: a call returns a [core.RefusedError] while a
// signal matches CancelOn, and waits while one matches DeferOn, until that is over,
// for MaxDefer at most, or until its context ends, whose cause it then returns.
// Otherwise it does the work, on the goroutine of the caller and with its context,
// whatever is raised meanwhile. After Complete, Drain and Close it returns
// [core.ErrClosed].
//
// The work is the caller's, not the gate's: it is not limited by MaxConcurrency nor
// in Stats, and Close does not cancel it. [Gate.Calls] counts the calls. Each costs
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
	GaveUp  uint64 `json:"gaveUp"`  // their context ended, or the gate's life did
	Forced  uint64 `json:"forced"`  // of Passed: in spite of DeferOn
}

// Calls returns the counters of the calls of wrapped functions, read as one cut.
func (g *Gate[T]) Calls() CallStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}

// call is one at the gate. Its operation does nothing: that it may run is what it
// waits for.
type call struct{ forced bool }

func passes(ctx context.Context, c *call) error {
	c.forced = core.OperationFrom(ctx).Has(core.SignalForced)
	return nil
}

// pass waits until the gate lets the caller through.
func (g *Gate[T]) pass(ctx context.Context) (err error) {
	c := new(call)
	err = core.ErrClosed
	g.count(func(s *CallStats) { s.Calls++; s.Waiting++ })
	defer g.count(func(s *CallStats) { // also if the context panics
		s.Waiting--
		switch {
		case err == nil:
			s.Passed++
			if c.forced {
				s.Forced++
			}
		case refused(err) != nil:
			s.Refused++
		default:
			s.GaveUp++
		}
	})
	if g.items.Stats().Closed { // while items are drained, the calls may still be open
		return err
	}
	err = g.calls.Do(ctx, c)
	return err
}

func (g *Gate[T]) count(change func(*CallStats)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.stats)
}

func refused(err error) *core.RefusedError {
	r, _ := errors.AsType[*core.RefusedError](err)
	return r
}

// Why lists the signals that stand in the way of an item, or a call, that would
// come now: one that it would be refused because of, or those that it would wait
// for. There is none if it would not be held up, and after Complete, Drain and
// Close. Why asks by knocking at the gate, so it costs as much as a call; nothing
// counts that.
func (g *Gate[T]) Why() []core.Reason {
	if g.items.Stats().Closed {
		return nil
	}
	id, err := g.calls.TryEnqueue(new(call))
	if r := refused(err); r != nil {
		return []core.Reason{{Kind: core.ReasonRefused, Signal: r.Signal, Since: r.Signal.Time}}
	}
	if err == core.ErrFull { // others wait: for the same
		for op := range g.calls.Operations(core.OperationQuery{Status: core.StatusPending}) {
			return g.reasons(op.ID)
		}
	}
	defer g.calls.Cancel(id, nil)
	return g.reasons(id)
}

// reasons lists the signals that hold up a call.
func (g *Gate[T]) reasons(id core.OperationID) (reasons []core.Reason) {
	x, _ := g.calls.Explain(id)
	for _, r := range x.Reasons {
		if r.Kind == core.ReasonRefused || r.Kind == core.ReasonDeferred {
			r.Operation = 0 // it is nobody's
			reasons = append(reasons, r)
		}
	}
	return reasons
}
