package signalaware

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Gate]. The zero value is the default: it gates nothing.
// Patterns are as described at [core.Match].
type Options struct {
	// Name tells gates apart: it is the Source of the signals that the work
	// raises. "" means "signalaware".
	Name string
	// CancelOn is which signals refuse items while they stand; "" means none.
	CancelOn string
	// DeferOn is which signals make items wait while they stand, unless a newer
	// one matches ResumeOn; "" means none.
	DeferOn, ResumeOn string
	// MaxDefer is how long an item waits because of DeferOn at most, counted
	// from when it came or the deferral began, whichever is later; 0 means 5
	// seconds, negative no limit.
	MaxDefer time.Duration
	// MaxConcurrency is how many items are worked on at once; 0 means
	// runtime.GOMAXPROCS. It does not limit calls that are wrapped.
	MaxConcurrency int
	// MaxQueued is how many items may wait, for a slot or a signal, before
	// Enqueue waits for room and TryEnqueue refuses; and, apart from these, how
	// many wrapped calls in a queue. 0 means 1024.
	MaxQueued int
	// MaxTracked is how many finished operations the gate still shows, besides
	// those that wait and run; 0 means 200, negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Sink is whose signals are heeded, and where the work raises its own; nil
	// means one of the gate's own.
	Sink *core.Sink
}

// A Gate works on items as far as signals let it. Make one with [New]. All methods
// are safe for concurrent use; those that would wait for the very work that calls
// them return [core.ErrWouldDeadlock]. While nothing runs it owns no goroutine, but
// a shared sink keeps it alive until it is drained or closed.
type Gate[T any] struct {
	items *core.Coordinator[T]
	calls *core.Coordinator[*call] // does nothing but let them through

	mu    sync.Mutex
	stats CallStats
}

var (
	_ core.Inspector     = (*Gate[int])(nil)
	_ core.Enqueuer[int] = (*Gate[int])(nil)
)

// New makes a gate that does work for each item, or says what is wrong with the
// options. It starts nothing.
func New[T any](work core.Work[T], opts Options) (*Gate[T], error) {
	if opts.Name == "" {
		opts.Name = "signalaware"
	}
	if opts.Sink == nil {
		opts.Sink = core.NewSink(core.SinkOptions{})
	}
	common := core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Sink:           opts.Sink,
		CancelOn:       opts.CancelOn,
		DeferOn:        opts.DeferOn,
		ResumeOn:       opts.ResumeOn,
		MaxDefer:       opts.MaxDefer,
	}
	g := new(Gate[T])
	var err error
	if g.items, err = core.NewCoordinator(work, common); err != nil {
		return nil, fmt.Errorf("signalaware: %w", err)
	}
	common.Name += ".calls"
	common.MaxConcurrency = 1 // lets them through in the order in which they came
	if g.calls, err = core.NewCoordinator(passes, common); err != nil {
		return nil, errors.Join(fmt.Errorf("signalaware: %w", err), g.items.Close())
	}
	return g, nil
}

// Enqueue accepts an item and returns the id of its operation. While a signal
// matches CancelOn it returns a [core.RefusedError] that names it, and id 0. While
// the queue is full it waits for room, first come first served, until ctx ends,
// whose cause it then returns. What the work does with its own context is another
// matter: that has the values of ctx, but does not end with it. Enqueue returns
// [core.ErrClosed] after Complete, Drain and Close.
func (g *Gate[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return g.items.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when
// the queue is full.
func (g *Gate[T]) TryEnqueue(item T) (core.OperationID, error) { return g.items.TryEnqueue(item) }

// Do enqueues an item, waits until it is worked on, and returns the error of the
// work, or the [core.RefusedError] if it was refused. When ctx ends first, the work
// is cancelled and the cause of ctx returned.
func (g *Gate[T]) Do(ctx context.Context, item T) error { return g.items.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work, or a
// [core.RefusedError] if it was refused while it waited. When ctx ends first it only
// stops waiting. It returns [core.ErrUnknown] for an operation that the gate does
// not show any more.
func (g *Gate[T]) Wait(ctx context.Context, id core.OperationID) error { return g.items.Wait(ctx, id) }

// Cancel keeps an operation from starting, or cancels the context of its work with
// that cause; nil means [core.ErrCancelled]. It reports false if there was nothing
// to cancel.
func (g *Gate[T]) Cancel(id core.OperationID, cause error) bool { return g.items.Cancel(id, cause) }

// Raise raises a signal on the gate's sink, with no key, and reports whether it was
// recorded: not if the name is empty. On a sink that is shared it is there for
// everybody; a condition of this gate alone needs a gate with a sink of its own.
func (g *Gate[T]) Raise(name string) bool { return g.Sink().Raise(name) }

// Hold is Raise for a condition that stands until release is called or, if lease is
// positive, until that is over; see [core.Sink.Hold].
func (g *Gate[T]) Hold(name, key string, lease time.Duration) (release func()) {
	return g.Sink().Hold(name, key, lease)
}

// Retract takes back the signals matching pattern that were raised with Raise, or
// directly on the gate's sink by others, and returns how many there were. Those of
// operations, and those that are held, are not among them.
func (g *Gate[T]) Retract(pattern string) int { return g.Sink().Retract(pattern) }

// Lookup returns what the gate knows of an operation that waits, runs, or has
// finished not long ago.
func (g *Gate[T]) Lookup(id core.OperationID) (core.Snapshot, bool) { return g.items.Lookup(id) }

// Operations walks the operations that q selects, in the order in which they were
// accepted.
func (g *Gate[T]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return g.items.Operations(q)
}

// Explain says why an operation waits: for which signal, who raised it, and when it
// runs all the same.
func (g *Gate[T]) Explain(id core.OperationID) (core.Explanation, bool) { return g.items.Explain(id) }

// OnFinalized calls fn with the last snapshot of every operation that leaves the
// window, exactly once each, on Close too; see [core.Coordinator.OnFinalized].
func (g *Gate[T]) OnFinalized(fn func(core.Snapshot)) (cancel func()) { return g.items.OnFinalized(fn) }

// Stats returns the counters of items, read as one cut. Every accepted item is in
// exactly one of them; Rejected are those refused by Enqueue, Refused those refused
// while they waited, Forced those that ran in spite of DeferOn.
func (g *Gate[T]) Stats() core.Stats { return g.items.Stats() }

// Name is [Options.Name].
func (g *Gate[T]) Name() string { return g.items.Name() }

// Sink is whose signals are heeded.
func (g *Gate[T]) Sink() *core.Sink { return g.items.Sink() }

// Complete ends the intake, of items and of wrapped calls. What was accepted is
// still worked on, when signals let it.
func (g *Gate[T]) Complete() {
	g.items.Complete()
	g.calls.Complete()
}

// Flush waits until everything accepted so far is finished, and the calls that wait
// have been let through, while the intake stays open. When ctx ends first it
// returns its cause.
func (g *Gate[T]) Flush(ctx context.Context) error {
	if err := g.items.Flush(ctx); err != nil {
		return err
	}
	return g.calls.Flush(ctx)
}

// Drain ends the intake and waits as Flush does. When ctx ends first it returns its
// cause; the work goes on.
func (g *Gate[T]) Drain(ctx context.Context) error {
	err := g.items.Drain(ctx)
	if err == core.ErrWouldDeadlock {
		return err
	}
	g.calls.Complete()
	if err != nil {
		return err
	}
	return g.calls.Drain(ctx)
}

// Close ends the intake, cancels the work that runs, with the cause
// [core.ErrClosed], accounts for the items that wait as cancelled, and waits for
// the work to return; called by the work itself it does not wait. Calls that wait
// get that error. It returns nil.
func (g *Gate[T]) Close() error { return errors.Join(g.calls.Close(), g.items.Close()) }
