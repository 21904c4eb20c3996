package signalaware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// CancelOn matches the signals that refuse items while they stand; "" means none.
	CancelOn string
	// DeferOn matches the signals that make items wait while they stand, unless a newer
	// signal matches ResumeOn; "" means none.
	DeferOn, ResumeOn string
	// MaxDefer is how long an item waits at most because of raised signals that
	// match DeferOn, counted from when the item came or from when the first of the
	// signals was raised, whichever is later; 0 means 5 seconds, negative no limit. Held
	// signals make it wait as long as they are held.
	MaxDefer time.Duration
	// MaxConcurrency is how many items are worked on at once; 0 means
	// runtime.GOMAXPROCS. It does not limit calls that are wrapped.
	MaxConcurrency int
	// MaxQueued is how many items may wait, for a slot or a signal, before
	// Enqueue waits for room and TryEnqueue refuses; 0 means 1024, negative no queue.
	// Calls that are wrapped do not count.
	MaxQueued int
	// MaxTracked is how many finished operations the gate still shows, besides
	// operations that wait and run, and the last 200 that failed; 0 means 200, negative
	// none, failed ones included.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// Timeout is how long the work on an item may take, from its start; 0 or negative
	// means no limit. Then its context ends with the cause [core.ErrTimeout]; see
	// [core.Options].
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink is where the gate looks for signals, and where the work raises its own; nil
	// means one of the gate's own.
	Sink *core.Sink
}

// A Gate works on items as far as signals let it. Make one with [New]. All methods
// are safe for concurrent use; methods that would wait for the very work that calls
// them return [core.ErrWouldDeadlock]. While nothing runs it owns no goroutine, but
// a shared sink keeps it alive until it is drained, stopped or closed.
//
// The methods of [core.Control] are about the items: Pause, SetMaxConcurrency and Abort do
// not affect wrapped calls, and Has, Count, Sense and Monitor are about the signals that
// the work has raised, not about all signals on the sink. The methods that end the gate,
// from Complete to Close, are about both.
type Gate[T any] struct {
	core.Control
	items *core.Coordinator[T]
	calls *core.Coordinator[*call] // its operations do nothing; a call waits until its operation runs

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
	common := core.Options{
		Name:           cmp.Or(opts.Name, "signalaware"),
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxQueued,
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
		Timeout:        opts.Timeout,
		OnDone:         opts.OnDone,
		Sink:           cmp.Or(opts.Sink, core.NewSink(core.SinkOptions{})),
		CancelOn:       opts.CancelOn,
		DeferOn:        opts.DeferOn,
		ResumeOn:       opts.ResumeOn,
		MaxDefer:       opts.MaxDefer,
	}
	items, err := core.NewCoordinator(work, common)
	if err != nil {
		return nil, fmt.Errorf("signalaware: %w", err)
	}
	common.Name += ".calls"
	common.MaxConcurrency = 1 // lets them through in the order in which they came
	common.MaxQueued, common.Timeout, common.OnDone = 0, 0, nil
	calls := core.Must(core.NewCoordinator(passes, common)) // these options are valid
	return &Gate[T]{Control: items.Control, items: items, calls: calls}, nil
}

// Enqueue accepts an item and returns the id of its operation. While a signal
// matches CancelOn it returns a [core.RefusedError] that names it, and id 0. While
// the queue is full it waits for room, first come first served, until ctx ends,
// whose cause it then returns; calls from the work itself are accepted without waiting,
// see [core.Coordinator.Enqueue]. The context of the work has the values of ctx, but does
// not end with it. Enqueue returns [core.ErrClosed] after Complete, Drain, Stop and Close.
func (g *Gate[T]) Enqueue(ctx context.Context, item T) (core.OperationID, error) {
	return g.items.Enqueue(ctx, item)
}

// TryEnqueue is Enqueue that does not wait: it returns [core.ErrFull] when the queue is
// full.
func (g *Gate[T]) TryEnqueue(ctx context.Context, item T) (core.OperationID, error) {
	return g.items.TryEnqueue(ctx, item)
}

// Do enqueues an item, waits until it is worked on, and returns the error of the
// work, or the [core.RefusedError] if it was refused. When ctx ends first, the work
// is cancelled and the cause of ctx returned. Called from the work itself, Do gives up
// its slot meanwhile; see [core.Coordinator.Do].
func (g *Gate[T]) Do(ctx context.Context, item T) error { return g.items.Do(ctx, item) }

// Wait waits until an operation is finished and returns the error of its work, or a
// [core.RefusedError] if it was refused while it waited. When ctx ends first it only
// stops waiting. It returns [core.ErrUnknown] for an operation that the gate does
// not show any more.
func (g *Gate[T]) Wait(ctx context.Context, id core.OperationID) error { return g.items.Wait(ctx, id) }

// Raise raises a signal on the gate's sink, with no key, and reports whether it was
// recorded: not if the name is empty. Other users of the sink see it too: a condition of
// this gate alone needs a gate with a sink of its own. To end the condition, call
// [core.Sink.Retract]; for one with a known end, call [core.Sink.Hold] instead of Raise.
func (g *Gate[T]) Raise(name string) bool { return g.Sink().Raise(name) }

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

// WaitIdle waits until every item is finished, those included that the work has
// enqueued meanwhile, and the calls that wait then have been let through. The intake
// stays open. When ctx ends first it returns its cause.
func (g *Gate[T]) WaitIdle(ctx context.Context) error {
	if err := g.items.WaitIdle(ctx); err != nil {
		return err
	}
	return g.calls.Flush(ctx)
}

// Drain ends the intake and waits as Flush does. When ctx ends first it returns its
// cause; the work goes on.
func (g *Gate[T]) Drain(ctx context.Context) error {
	if g.items.Inside(ctx) || g.calls.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	g.Complete()
	return g.Flush(ctx)
}

// Stop ends the intake, cancels the items that wait, with the cause [core.ErrStopped],
// and waits for the work that runs. Calls that wait get that error. When ctx ends first
// it returns its cause; the work goes on.
func (g *Gate[T]) Stop(ctx context.Context) error {
	if g.items.Inside(ctx) || g.calls.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	g.Complete()
	err := g.calls.Stop(ctx) // calls end at once: none of them waits for an item
	return cmp.Or(g.items.Stop(ctx), err)
}

// Close ends the intake, cancels the work that runs, with the cause
// [core.ErrClosed], accounts for the items that wait as cancelled, and waits for
// the work to return; called by the work itself it does not wait. Calls that wait
// get that error. It returns nil.
func (g *Gate[T]) Close() error { return errors.Join(g.calls.Close(), g.items.Close()) }
