package waves

import (
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/core"
)

// run is one run of a stage: the item of the coordinator.
type run struct {
	stage   *stage
	trigger core.Signal
}

// errPanicked stands for a panic of the work. The coordinator recovers the panic itself.
var errPanicked = errors.New("waves: the work panicked or ended its goroutine")

// run is the work of the coordinator.
func (e *Executor) run(ctx context.Context, r run) (err error) {
	op := core.OperationFrom(ctx)
	if exit := e.exit.Load(); exit != nil {
		e.Cancel(op.ID(), exit) // it left the queue while the exit was being taken
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	op.SetKey(r.trigger.Key)
	op.Set(ValueStage, r.stage.Name)
	result := errPanicked
	defer func() {
		switch {
		case result == nil:
			e.raise(r, nil, r.stage.onComplete...)
		case result != errPanicked && ctx.Err() != nil:
			e.raise(r, result, Cancelled)
		default:
			e.raise(r, result, r.stage.onFailure...)
			e.raise(r, result, Failed)
		}
	}()
	e.raise(r, nil, r.stage.onStart...)
	if err = context.Cause(ctx); err == nil { // a handler may have taken the exit
		err = r.stage.Work(ctx, r.trigger)
	}
	result = err
	return err
}

// raise raises signals about a run.
func (e *Executor) raise(r run, err error, kinds ...core.Kind[Event]) {
	for _, k := range kinds {
		k.Raise(e.sink.Because(r.trigger), r.trigger.Key, Event{Stage: r.stage.Name, Err: err, by: r.stage})
	}
}
