package reactivefanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	// SignalFirstFailed is raised by each operation of the first stage that fails or panics.
	SignalFirstFailed = "stage1.failed"
	// SignalSecondFailed is raised by each operation of the second stage that fails or panics.
	SignalSecondFailed = "stage2.failed"
	// SignalThrottled is held while the first stage is at its minimum. The key is the name of
	// the Fanout.
	SignalThrottled = "stage1.throttled"
)

// Options configure a [Fanout]. The zero value is the default.
type Options struct {
	// Name is the key of [SignalThrottled]. The coordinators of the stages are called Name.1
	// and Name.2; this is the Source of the signals of their operations. "" means
	// "reactivefanout".
	//
	//ephemeral:none
	Name string
	// Concurrency is the limit of the first stage; 0 means 8. MinConcurrency is its limit
	// under pressure; 0 means 1. Downstream is the limit of the second stage; 0 means 4.
	Concurrency, MinConcurrency, Downstream int
	// High and Low are numbers of items that wait for the second stage. Pressure begins when
	// High items wait; 0 means 32. It ends when only Low items wait; 0 means a quarter of
	// High, negative means none. At most 2 x High items can wait.
	High, Low int
	// MaxQueued is how many items may wait for the first stage. With more, Enqueue waits and
	// TryEnqueue returns [core.ErrFull]. 0 means 1024, negative no queue.
	MaxQueued int
	// Sink gets all signals; nil means a new sink.
	Sink *signals.Sink
}

func (o Options) resolved() (Options, error) {
	o.Name, o.Sink = cmp.Or(o.Name, "reactivefanout"), cmp.Or(o.Sink, signals.NewSink(signals.SinkOptions{}))
	o.Concurrency, o.MinConcurrency, o.Downstream = cmp.Or(o.Concurrency, 8), cmp.Or(o.MinConcurrency, 1), cmp.Or(o.Downstream, 4)
	o.High = cmp.Or(o.High, 32)
	o.Low = max(0, cmp.Or(o.Low, o.High/4))
	switch {
	case o.MinConcurrency < 1 || o.Concurrency < o.MinConcurrency:
		return o, fmt.Errorf("reactivefanout: Options.Concurrency is %d, but must not be less than MinConcurrency, which is %d and must be positive", o.Concurrency, o.MinConcurrency)
	case o.Downstream < 1:
		return o, fmt.Errorf("reactivefanout: Options.Downstream is %d, but must be positive", o.Downstream)
	case o.High <= o.Low:
		return o, fmt.Errorf("reactivefanout: Options.High is %d, but must be more than 0 and than Low, which is %d", o.High, o.Low)
	}
	return o, nil
}

// A Fanout runs items through two stages. Make one with [New]. All methods are safe for
// concurrent use. An idle Fanout needs no Close.
type Fanout[In, Mid any] struct {
	core.Enqueuer[In] // intake of the first stage
	core.Lifecycle    // lifecycle of both stages: each method ends the first stage before the second

	opts          Options
	first, second core.Control
	throttle      throttle
}

// New makes a Fanout. It calls first for each item. If first returns no error, the Fanout
// calls second with the result. New starts nothing.
func New[In, Mid any](first core.ResultWork[In, Mid], second core.Work[Mid], opts Options) (*Fanout[In, Mid], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	if first == nil || second == nil {
		return nil, errors.New("reactivefanout: New needs two functions")
	}
	stage2 := core.Must(core.NewCoordinator(reporting(SignalSecondFailed, second), core.Options{ // the options are valid
		Name: opts.Name + ".2", MaxConcurrency: opts.Downstream, MaxQueued: 2 * min(opts.High, math.MaxInt/2), Sink: opts.Sink,
	}))
	stage1 := core.Must(core.NewCoordinator(reporting(SignalFirstFailed, func(ctx context.Context, item In) error {
		mid, err := first(ctx, item)
		if err == nil {
			_, err = stage2.Enqueue(ctx, mid)
		}
		return err
	}), core.Options{
		Name: opts.Name + ".1", MaxConcurrency: opts.Concurrency, MaxQueued: opts.MaxQueued, Sink: opts.Sink,
	}))
	f := &Fanout[In, Mid]{Enqueuer: stage1, Lifecycle: core.InOrder(stage1, stage2), opts: opts, first: stage1.Control, second: stage2.Control}
	f.throttle.watch(opts, f.first, f.second)
	return f, nil
}

// reporting returns work that raises a signal when it fails or panics, but not when it was
// cancelled.
func reporting[T any](signal string, work core.Work[T]) core.Work[T] {
	return func(ctx context.Context, item T) error {
		failed := true
		defer func() {
			if failed {
				core.OperationFrom(ctx).Raise(signal)
			}
		}()
		err := work(ctx, item)
		failed = err != nil && ctx.Err() == nil
		return err
	}
}

// Sink is the sink on which the operations of both stages raise their signals.
func (f *Fanout[In, Mid]) Sink() *signals.Sink { return f.opts.Sink }

// First shows the first stage: its operations, its counters, and why items wait. To end it,
// use the methods of the Fanout.
func (f *Fanout[In, Mid]) First() core.Control { return f.first }

// Second shows the second stage, like First.
func (f *Fanout[In, Mid]) Second() core.Control { return f.second }

// Flush waits until all items that were accepted before the call have left both stages. If
// one of the two functions calls Flush, Drain or Stop, it gets [core.ErrWouldDeadlock].
func (f *Fanout[In, Mid]) Flush(ctx context.Context) error { return f.outside(ctx, f.Lifecycle.Flush) }

// Drain ends the intake, and waits until all items have left both stages.
func (f *Fanout[In, Mid]) Drain(ctx context.Context) error { return f.outside(ctx, f.Lifecycle.Drain) }

// Stop ends the intake, cancels the items that wait for a stage, and waits for running items.
func (f *Fanout[In, Mid]) Stop(ctx context.Context) error { return f.outside(ctx, f.Lifecycle.Stop) }

func (f *Fanout[In, Mid]) outside(ctx context.Context, wait func(context.Context) error) error {
	if f.first.Inside(ctx) || f.second.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	return wait(ctx)
}

// throttle lowers the limit of the first stage while there is pressure.
type throttle struct {
	effects outbox.Outbox

	// Used by one effect at a time.
	ended   bool
	release func()
}

func (t *throttle) watch(opts Options, first, second core.Control) {
	press := func(over bool) {
		t.effects.Add(func() { t.press(over, opts, first) })
		t.effects.Run()
	}
	stop := second.OnPending(opts.High, opts.Low, press)
	second.OnClosed(func() {
		stop()
		t.effects.Add(func() {
			t.ended = true
			if t.release != nil {
				t.release()
			}
		})
		t.effects.Run()
	})
}

func (t *throttle) press(over bool, opts Options, first core.Control) {
	switch throttled := t.release != nil; {
	case t.ended || throttled == over:
	case throttled:
		first.SetMaxConcurrency(opts.Concurrency)
		t.release()
		t.release = nil
	default:
		first.SetMaxConcurrency(opts.MinConcurrency)
		t.release = opts.Sink.Hold(SignalThrottled, opts.Name, 0)
	}
}
