package signalaware

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Gate runs items while signals allow it. Make one with [New], and close it: a shared sink
// refers to it until Drain, Stop or Close. All methods are safe for concurrent use. Inside the
// work, methods that would wait for their caller return [core.ErrWouldDeadlock]. An idle gate
// has no goroutine.
//
// A gate is a [core.Coordinator] of its items and has all its methods. While a signal matches
// CancelOn, Enqueue, TryEnqueue, Submit and Do return a [core.RefusedError] with this signal. If
// an item is refused while it waits, Wait and Do return this error.
//
// The methods of the coordinator are about items. So Pause, SetMaxConcurrency and Abort do not
// affect wrapped calls, and Has, Count, Sense and Monitor look only at the signals of the work,
// not at all signals on the sink. Only Complete, Flush, WaitIdle, Drain, Stop and Close of the
// gate itself are about both, items and wrapped calls. On a lane or class of the gate, these
// methods are about items only.
type Gate[T any] struct {
	*core.Coordinator[T]
	calls *core.Coordinator[struct{}] // a wrapped call waits until its operation here has run; the operation does nothing
}

// New makes a gate that calls work for each item, or says what is wrong with the options. With the
// zero Options, no signal refuses or defers items. New starts no goroutine.
//
// The default of Name is "signalaware". Wrapped calls have the Source Name with ".calls". For
// them, the gate uses Sink, CancelOn, DeferOn, ResumeOn and MaxDefer. The other options are about
// items. When a signal that matches DrainOn has ended the intake of
// items, and all items are finished, calls get [core.ErrClosed].
func New[T any](work core.Work[T], opts core.Options) (*Gate[T], error) {
	opts.Name = cmp.Or(opts.Name, "signalaware")
	opts.Sink = cmp.Or(opts.Sink, signals.NewSink(signals.SinkOptions{}))
	items, err := core.NewCoordinator(work, opts)
	if err != nil {
		return nil, fmt.Errorf("signalaware: %w", err)
	}
	if opts.DeferOn == "" {
		opts.ResumeOn = "" // ResumeOn is for lanes only
	}
	calls := core.Must(core.NewCoordinator(passes, core.Options{ // these options are valid
		Name:           opts.Name + ".calls",
		MaxConcurrency: 1, // calls pass in order
		Sink:           opts.Sink,
		CancelOn:       opts.CancelOn,
		DeferOn:        opts.DeferOn,
		ResumeOn:       opts.ResumeOn,
		MaxDefer:       opts.MaxDefer,
	}))
	items.OnClosed(calls.Complete)
	return &Gate[T]{Coordinator: items, calls: calls}, nil
}

// Raise raises a signal on the sink of the gate, without a key. It returns false if the name is
// empty. The signal affects all users of the sink. To take the signal back, call
// [signals.Sink.Retract]. For a condition that lasts, call [signals.Sink.Hold] instead of Raise.
//
//ephemeral:raises {name}
func (g *Gate[T]) Raise(name string) bool { return g.Sink().Raise(name) }

// Complete ends the intake of items and of wrapped calls. Those that were accepted still run,
// when signals allow it.
func (g *Gate[T]) Complete() {
	g.Coordinator.Complete()
	g.calls.Complete()
}

// Flush waits until the items that were accepted so far are finished, and the calls that wait
// have passed. The intake stays open. If ctx ends first, Flush returns the cause of ctx.
func (g *Gate[T]) Flush(ctx context.Context) error {
	if err := g.Coordinator.Flush(ctx); err != nil {
		return err
	}
	return g.calls.Flush(ctx)
}

// WaitIdle waits until all items are finished, including those that the work enqueues meanwhile.
// Then it waits until the calls that wait have passed. The intake stays open. If ctx ends first,
// WaitIdle returns the cause of ctx.
func (g *Gate[T]) WaitIdle(ctx context.Context) error {
	if err := g.Coordinator.WaitIdle(ctx); err != nil {
		return err
	}
	return g.calls.Flush(ctx)
}

// Drain ends the intake and waits as Flush does. If ctx ends first, Drain returns the cause of
// ctx, and the work continues.
func (g *Gate[T]) Drain(ctx context.Context) error {
	if g.Coordinator.Inside(ctx) || g.calls.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	g.Complete()
	return g.Flush(ctx)
}

// Stop ends the intake, cancels the items that wait with the cause [core.ErrStopped], and waits
// for the work that runs. Calls that wait return this error. If ctx ends first, Stop returns the
// cause of ctx, and the work continues.
func (g *Gate[T]) Stop(ctx context.Context) error {
	if g.Coordinator.Inside(ctx) || g.calls.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	g.Complete()
	err := g.calls.Stop(ctx) // calls end at once, because they do not wait for items
	return cmp.Or(g.Coordinator.Stop(ctx), err)
}

// Close ends the intake, cancels items that wait and the work that runs, with the cause
// [core.ErrClosed], and waits until the work has returned. Inside the work it does not wait.
// Calls that wait return this error. Close returns nil.
func (g *Gate[T]) Close() error { return errors.Join(g.calls.Close(), g.Coordinator.Close()) }
