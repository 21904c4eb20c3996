package earlyexit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Outcome is what a [Collector] has collected, and how that ended.
type Outcome[Out any] struct {
	Exited   bool        // a signal ended it
	Signal   core.Signal // which; zero if none did
	Results  []Out       // of the operations that succeeded, in the order of their items
	Combined Out         // what combine made of these; zero without one
}

// A Collector does work for items, a bounded number at once, and keeps all results,
// until a signal ends it. Make one with [New].
//
// Results are kept as long as the collector is, one for each item that succeeded;
// all else is bounded as in any coordinator. A sink that is shared keeps the collector
// alive until Drain, Results or Close has returned; one with a sink of its own, as it
// is by default, can just be forgotten. All methods are safe for concurrent use, from
// the work and from handlers as well; those that would wait for the very work that
// calls them return [core.ErrWouldDeadlock].
type Collector[In, Out any] struct {
	work        core.ResultWork[In, Out]
	coordinator *core.Coordinator[In]
	combine     func(exit core.Signal, results []Out) (Out, error)
	unsubscribe func()

	combined chan struct{} // closed when outcome and err are there
	outcome  Outcome[Out]
	err      error

	mu        sync.Mutex
	exited    *ExitedError // nil: not
	combining bool
	results   []result[Out]
}

type result[Out any] struct {
	id  core.OperationID
	out Out
}

var (
	_ core.Lifecycle     = (*Collector[int, int])(nil)
	_ core.Enqueuer[int] = (*Collector[int, int])(nil)
)

// New makes a collector that does work for each item until a signal matching exitOn
// is raised on its sink, by an operation of its own or by others. It starts nothing.
//
// Combine, unless it is nil, makes one of the results: it is called once, by the
// first [Collector.Results], with the signal, or the zero Signal if none came, and a
// copy of the results. The options are a coordinator's; their default of Name is
// "earlyexit", and Lanes are not accepted. New returns an error if they, or exitOn,
// make no sense.
func New[In, Out any](work core.ResultWork[In, Out], exitOn string, combine func(exit core.Signal, results []Out) (Out, error), opts core.Options) (*Collector[In, Out], error) {
	switch {
	case work == nil:
		return nil, errors.New("earlyexit: there must be work to do, not a nil function")
	case !strings.ContainsFunc(exitOn, func(r rune) bool { return r != ',' && !unicode.IsSpace(r) }):
		return nil, fmt.Errorf("earlyexit: exitOn is %q, a pattern that no signal matches", exitOn)
	case len(opts.Lanes) > 0:
		return nil, errors.New("earlyexit: Options.Lanes are for coordinators: items of a collector have no lanes")
	}
	if opts.Name == "" {
		opts.Name = "earlyexit"
	}
	c := &Collector[In, Out]{work: work, combine: combine, combined: make(chan struct{})}
	coordinator, err := core.NewCoordinator(c.run, opts)
	if err != nil {
		return nil, fmt.Errorf("earlyexit: %w", err)
	}
	c.coordinator = coordinator
	c.unsubscribe = coordinator.Sink().Subscribe(exitOn, c.exit)
	return c, nil
}

// run is the body of the operations.
func (c *Collector[In, Out]) run(ctx context.Context, in In) error {
	id := core.OperationFrom(ctx).ID()
	if exited := c.exitedError(); exited != nil { // has begun to cancel, and not come to this one
		c.coordinator.Cancel(id, exited)
		return exited
	}
	out, err := c.work(ctx, in)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.results = append(c.results, result[Out]{id, out})
	c.mu.Unlock()
	return nil
}

// exit is the handler of the signals that end the collector.
func (c *Collector[In, Out]) exit(s core.Signal) {
	c.mu.Lock()
	if c.exited != nil {
		c.mu.Unlock()
		return
	}
	exited := &ExitedError{s}
	c.exited = exited
	c.mu.Unlock()
	c.coordinator.Complete()
	for op := range c.coordinator.Operations(core.OperationQuery{Status: core.StatusPending | core.StatusRunning}) {
		c.coordinator.Cancel(op.ID, exited)
	}
	c.coordinator.Sink().Because(s).RaiseKey(SignalExited, s.Key)
}

func (c *Collector[In, Out]) exitedError() *ExitedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exited
}

// late says more about an item that was not accepted because a signal had come.
func (c *Collector[In, Out]) late(err error) error {
	if errors.Is(err, core.ErrClosed) {
		if exited := c.exitedError(); exited != nil {
			return exited
		}
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

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when
// there is no room.
func (c *Collector[In, Out]) TryEnqueue(in In) (core.OperationID, error) {
	id, err := c.coordinator.TryEnqueue(in)
	return id, c.late(err)
}

// Results ends the intake, waits until everything accepted is finished, which after
// the signal is when the work has heeded its cancellation, and returns the outcome.
// What has succeeded is in it, also what succeeded in spite of the signal, as the
// operation that raised it usually does. After Close it is what there was until
// then.
//
// Results may be called many times, and returns the same, each time with a slice of
// its own. When ctx ends first it returns its cause, with no outcome; another call may
// go on waiting. An error or a panic of combine is returned together with the rest of
// the outcome. Combine itself must not call Results.
func (c *Collector[In, Out]) Results(ctx context.Context) (Outcome[Out], error) {
	if err := c.Drain(ctx); err != nil {
		return Outcome[Out]{}, err
	}
	c.mu.Lock()
	first := !c.combining
	c.combining = true
	c.mu.Unlock()
	if first {
		c.conclude()
	} else if err := c.await(ctx); err != nil {
		return Outcome[Out]{}, err
	}
	outcome := c.outcome
	outcome.Results = slices.Clone(outcome.Results)
	return outcome, c.err
}

// await waits for the outcome, if it is not there, until ctx ends.
func (c *Collector[In, Out]) await(ctx context.Context) error {
	select {
	case <-c.combined:
		return nil
	default:
	}
	select {
	case <-c.combined:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// conclude makes the outcome. All bodies have returned.
func (c *Collector[In, Out]) conclude() {
	defer close(c.combined)
	c.mu.Lock()
	results, exited := c.results, c.exited
	c.results = nil
	c.mu.Unlock()
	slices.SortFunc(results, func(a, b result[Out]) int { return cmp.Compare(a.id, b.id) })
	o := &c.outcome
	if exited != nil {
		o.Exited, o.Signal = true, exited.Signal
	}
	o.Results = make([]Out, len(results))
	for i, r := range results {
		o.Results[i] = r.out
	}
	if c.combine == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			c.err = fmt.Errorf("earlyexit: combining the results: %w", &core.PanicError{Value: recover(), Stack: debug.Stack()})
		}
	}()
	o.Combined, c.err = c.combine(o.Signal, slices.Clone(o.Results))
	returned = true
}

// Stats returns the counters of the items, read as one cut. What the signal cancelled
// and discarded is in Cancelled.
func (c *Collector[In, Out]) Stats() core.Stats { return c.coordinator.Stats() }

// Operations walks the operations that q selects, in the order in which they were
// accepted; of those that are finished, as many as the window keeps.
func (c *Collector[In, Out]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return c.coordinator.Operations(q)
}

// Lookup returns what is known of an operation that waits, runs, or is still in the
// window.
func (c *Collector[In, Out]) Lookup(id core.OperationID) (core.Snapshot, bool) {
	return c.coordinator.Lookup(id)
}

// Name is [core.Options.Name].
func (c *Collector[In, Out]) Name() string { return c.coordinator.Name() }

// Sink is where the operations raise their signals, and where the collector hears
// those that end it.
func (c *Collector[In, Out]) Sink() *core.Sink { return c.coordinator.Sink() }

// Complete ends the intake. What was accepted still runs.
func (c *Collector[In, Out]) Complete() { c.coordinator.Complete() }

// Flush waits until everything accepted so far is finished, while the intake stays
// open. When ctx ends first it returns its cause.
func (c *Collector[In, Out]) Flush(ctx context.Context) error { return c.coordinator.Flush(ctx) }

// Drain ends the intake and waits until everything accepted is finished; from then on
// no signal counts. When ctx ends first it returns its cause; the work goes on.
func (c *Collector[In, Out]) Drain(ctx context.Context) error {
	if err := c.coordinator.Drain(ctx); err != nil {
		return err
	}
	c.unsubscribe()
	return nil
}

// Close ends the intake, cancels the work that runs, with the cause
// [core.ErrClosed], accounts for the items that wait as cancelled, and waits for the
// work to return; called by the work itself or by a handler it does not wait. It
// returns nil.
func (c *Collector[In, Out]) Close() error {
	c.unsubscribe()
	return c.coordinator.Close()
}
