package earlyexit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// An Outcome has the results of a [Collector], and says how it ended.
type Outcome[Out any] struct {
	Exited   bool        // a signal ended it
	Signal   core.Signal // the signal; zero if there was none
	Results  []Out       // results of the operations that succeeded, in the order of their items
	Combined Out         // the result of combine; zero without combine, and with an error
}

// A Collector does work for items, a bounded number at once, and keeps all results,
// until a signal ends it. Make one with [New].
//
// It keeps one result for each item that succeeded; all other memory is bounded as in any
// coordinator. A shared sink keeps the collector alive until Close, or until the intake has
// ended and all accepted items are done. A collector with its own sink, which is the
// default, need not be ended. All methods are safe for concurrent use, from the work and
// from handlers as well. A method that would wait for the work that calls it returns
// [core.ErrWouldDeadlock].
type Collector[In, Out any] struct {
	core.Control
	work        core.ResultWork[In, Out]
	coordinator *core.Coordinator[In]
	combine     func(exit core.Signal, results []Out) (Out, error)
	exit        *Exit

	combining atomic.Bool
	combined  chan struct{} // closed when outcome and err are set
	outcome   Outcome[Out]
	err       error

	mu      sync.Mutex
	results []result[Out]
}

type result[Out any] struct {
	id  core.OperationID
	out Out
}

var (
	_ core.Inspector     = (*Collector[int, int])(nil)
	_ core.Enqueuer[int] = (*Collector[int, int])(nil)
)

// New makes a collector that does work for each item until a signal that matches exitOn is
// raised on its sink, by its own operations or by other code. It starts nothing.
//
// Combine may be nil. It is called once, by the first [Collector.Results], with the
// signal and a copy of the results. If no signal came, it is the zero Signal. The
// options are the options of a coordinator; the default of Name is "earlyexit", and
// Lanes and Classes are not accepted. New returns an error if work is nil, or the
// options or exitOn are not valid.
//
//ephemeral:pattern {exitOn}
func New[In, Out any](
	work core.ResultWork[In, Out], exitOn string, combine func(exit core.Signal, results []Out) (Out, error), opts core.Options,
) (*Collector[In, Out], error) {
	switch {
	case work == nil:
		return nil, errors.New("earlyexit: there must be work to do, not a nil function")
	case strings.Trim(exitOn, ", \t\r\n") == "":
		return nil, fmt.Errorf("earlyexit: exitOn is %q, a pattern that no signal matches", exitOn)
	case len(opts.Lanes)+len(opts.Classes) > 0:
		return nil, errors.New("earlyexit: Options.Lanes and Classes are for coordinators, not for a collector")
	}
	opts.Name = cmp.Or(opts.Name, "earlyexit")
	c := &Collector[In, Out]{work: work, combine: combine, combined: make(chan struct{})}
	coordinator, err := core.NewCoordinator(c.run, opts)
	if err != nil {
		return nil, fmt.Errorf("earlyexit: %w", err)
	}
	c.coordinator, c.Control = coordinator, coordinator.Control
	c.exit = On(coordinator, exitOn)
	return c, nil
}

// run is the body of the operations.
func (c *Collector[In, Out]) run(ctx context.Context, in In) error {
	if c.exit.taken.Load() != nil && ctx.Err() != nil { // the operation was starting when the signal came
		return context.Cause(ctx)
	}
	out, err := c.work(ctx, in)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.results = append(c.results, result[Out]{core.OperationFrom(ctx).ID(), out})
	c.mu.Unlock()
	return nil
}

// late replaces the error of an item that was refused because a signal had come.
func (c *Collector[In, Out]) late(err error) error {
	if exited := c.exit.taken.Load(); exited != nil && guard.Is(err, core.ErrClosed) {
		return exited
	}
	return err
}

// Enqueue gives an item to the collector and returns the id of its operation; see
// [core.Coordinator.Enqueue]. It returns an [ExitedError] once a signal has ended
// the collector.
func (c *Collector[In, Out]) Enqueue(ctx context.Context, in In) (core.OperationID, error) {
	id, err := c.coordinator.Enqueue(ctx, in)
	return id, c.late(err)
}

// TryEnqueue is Enqueue without waiting: it returns [core.ErrFull] when there is no room.
func (c *Collector[In, Out]) TryEnqueue(ctx context.Context, in In) (core.OperationID, error) {
	id, err := c.coordinator.TryEnqueue(ctx, in)
	return id, c.late(err)
}

// Results ends the intake, waits until all accepted operations have ended, and returns the
// outcome. After the signal, it waits for the work to return. The outcome has the results
// of all operations that succeeded, even after the signal: usually the operation that
// raised it succeeds. After Close, the outcome has the results until then.
//
// Results may be called many times. It returns the same outcome, with a copy of the slice.
// If ctx ends first, Results returns the cause of ctx and no outcome; another call may
// wait again. An error or a panic of combine is returned together with the rest of the
// outcome. Combine must not call Results.
func (c *Collector[In, Out]) Results(ctx context.Context) (Outcome[Out], error) {
	if err := c.Drain(ctx); err != nil {
		return Outcome[Out]{}, err
	}
	if c.combining.CompareAndSwap(false, true) {
		c.conclude()
	}
	select {
	case <-c.combined:
	case <-ctx.Done():
		select {
		case <-c.combined: // the outcome came before the end of ctx
		default:
			return Outcome[Out]{}, context.Cause(ctx)
		}
	}
	outcome := c.outcome
	outcome.Results = slices.Clone(outcome.Results)
	return outcome, c.err
}

// conclude makes the outcome. All bodies have returned.
func (c *Collector[In, Out]) conclude() {
	defer close(c.combined)
	c.mu.Lock()
	results := c.results
	c.results = nil
	c.mu.Unlock()
	slices.SortFunc(results, func(a, b result[Out]) int { return cmp.Compare(a.id, b.id) })
	o := &c.outcome
	o.Signal, o.Exited = c.exit.Signal()
	o.Results = make([]Out, len(results))
	for i, r := range results {
		o.Results[i] = r.out
	}
	if c.combine == nil {
		return
	}
	flight.Run(func() (Out, error) { return c.combine(o.Signal, slices.Clone(o.Results)) }, func(combined Out, err error) {
		if _, panicked := guard.As[*core.PanicError](err); panicked {
			err = fmt.Errorf("earlyexit: combining the results: %w", err)
		}
		o.Combined, c.err = combined, err
	})
}
