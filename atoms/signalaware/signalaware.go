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

// Options configure a [Gate]. With the zero value, no signal refuses or defers items. For
// patterns see [core.Match].
type Options struct {
	// Name is the Source of the signals of the work. "" means "signalaware". The Source
	// of wrapped calls is Name with ".calls".
	Name string
	// CancelOn is a pattern. While a signal on the sink matches it, items are refused. ""
	// means none.
	CancelOn string
	// DeferOn is a pattern. While a signal on the sink matches it, items wait, unless a
	// newer signal matches ResumeOn. "" means none. ResumeOn without DeferOn is an error.
	DeferOn, ResumeOn string
	// MaxDefer is the longest time that raised signals defer an item. The time begins when
	// the item is enqueued or when the first of the signals is raised, whichever is later.
	// A held signal defers items until it is released. 0 means 5 seconds, negative means
	// no limit.
	MaxDefer time.Duration
	// MaxConcurrency is how many items run at once; wrapped calls do not count. 0 means
	// runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxQueued is how many items may wait, for a slot or a signal; wrapped calls do not
	// count. If so many wait, Enqueue waits for room and TryEnqueue refuses. 0 means 1024,
	// negative means no queue.
	MaxQueued int
	// MaxTracked is how many finished operations the gate shows. The last 200 failed
	// operations are shown in addition. 0 means 200; negative means none, and no failed
	// ones.
	MaxTracked int
	// MaxAge is how long finished operations are shown. 0 means 5 minutes, negative means
	// no limit.
	MaxAge time.Duration
	// Timeout is how long the work on an item may take, from its start. Then its context
	// ends with the cause [core.ErrTimeout]. 0 and negative mean no limit.
	Timeout time.Duration
	// OnDone is called once for every operation that ends, also if it never ran; see
	// [core.Options].
	OnDone func(core.Snapshot)
	// Sink has the signals at which the gate looks, and gets the signals of the work. nil
	// means a new sink.
	Sink *core.Sink
}

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
// gate itself are about items and wrapped calls; those of its lanes and classes are about items.
type Gate[T any] struct {
	*core.Coordinator[T]
	calls *core.Coordinator[*call] // a wrapped call waits until its operation here has run; the operation does nothing

	mu    sync.Mutex
	stats CallStats
}

// New makes a gate that calls work for each item, or says what is wrong with the options. It
// starts no goroutine.
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
	common.MaxConcurrency = 1 // calls pass in order
	common.MaxQueued, common.Timeout, common.OnDone = 0, 0, nil
	calls := core.Must(core.NewCoordinator(passes, common)) // these options are valid
	return &Gate[T]{Coordinator: items, calls: calls}, nil
}

// Raise raises a signal on the sink of the gate, without a key. It returns false if the name is
// empty. The signal affects all users of the sink. To take the signal back, call
// [core.Sink.Retract]. For a condition that lasts, call [core.Sink.Hold] instead of Raise.
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

// WaitIdle waits until all items are finished, also those that the work enqueues meanwhile. Then
// it waits until the calls that wait have passed. The intake stays open. If ctx ends first,
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
