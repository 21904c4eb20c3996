package signalreactionshowcase

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of a run.
const (
	// SignalStart is raised by each item when it begins, SignalDone when it ends. A colon and
	// the number of the item follow the name, as in "stage.begun:3".
	//
	//ephemeral:raises stage.begun:*
	SignalStart = "stage.begun"
	//ephemeral:raises stage.done:*
	SignalDone = "stage.done"
	// signalDeferred is held on the sink while items should wait.
	signalDeferred = "showcase.deferred"
	// signalRefused is held on the sink while items should be refused.
	signalRefused = "showcase.refused"
)

// Result is the result of [Run]. Dispatched, Polled and Deferred are equal to the number of
// items. Called and the length of Signals are twice that number.
type Result struct {
	Called     int // signals for which OnSignal was called, on the goroutines of the items
	Dispatched int // signals stage.done:N that were handled in the background
	Polled     int // signals stage.done:N that were counted on the sink afterwards
	Deferred   int // items that waited because of DeferOn
	Refused    int // items that were refused because of CancelOn: 1
	//ephemeral:none
	Signals []string // names of the signals that items have raised, in order
}

// maxItems is how many items may run: there is room for four signals of each.
const maxItems = signals.MaxSinkCapacity / 4

// Run runs the given number of items, from 1 to 16,777,216, and reacts to their signals in all
// ways. Each item takes 5 ms. If ctx ends, Run cancels all items, and returns the cause of
// ctx.
func Run(ctx context.Context, items int) (Result, error) {
	if items < 1 || items > maxItems {
		return Result{}, fmt.Errorf("signalreactionshowcase: items is %d, but must be from 1 to %d", items, maxItems)
	}
	var called, dispatched atomic.Int64
	sink := signals.NewSink(signals.SinkOptions{Capacity: items * 4, MaxAge: -1})
	background := core.Must(core.NewDispatcher(core.Options{Sink: sink, MaxConcurrency: 4, MaxQueued: items * 4}))
	defer background.Close()
	background.Handle(SignalDone+":*", func(context.Context, signals.Signal) error { dispatched.Add(1); return nil })
	work := core.Must(core.NewCoordinator(stage, core.Options{
		MaxConcurrency: min(runtime.NumCPU(), 8), MaxQueued: items, MaxTracked: items, MaxAge: -1, Sink: sink,
		OnSignal: func(s signals.Signal) { called.Add(1); background.Dispatch(s) },
		DeferOn:  signalDeferred, CancelOn: signalRefused,
	}))
	defer work.Close()

	var r Result
	release := sink.Hold(signalDeferred, "", 0)
	for i := range items {
		if _, err := work.Enqueue(ctx, i); err != nil {
			return r, err
		}
	}
	r.Deferred = work.Stats().Pending
	release() // they run now
	if err := work.Flush(ctx); err != nil {
		return r, err
	}
	release = sink.Hold(signalRefused, "", 0)
	_, err := work.Enqueue(ctx, items)
	if _, refused := guard.As[*core.RefusedError](err); refused {
		r.Refused = 1
	}
	release()
	// The items first, then the reactions to them.
	if err := core.InOrder(work, background).Drain(ctx); err != nil {
		return r, err
	}
	r.Called, r.Dispatched, r.Polled = int(called.Load()), int(dispatched.Load()), sink.Count(SignalDone+":*")
	for s := range sink.Sense(signals.Query{Pattern: "stage.*"}) {
		r.Signals = append(r.Signals, s.Name)
	}
	return r, nil
}

// stage is the work of an item.
func stage(ctx context.Context, item int) error {
	op := core.OperationFrom(ctx)
	op.Raise(fmt.Sprint(SignalStart, ":", item))
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	op.Raise(fmt.Sprint(SignalDone, ":", item))
	return nil
}
