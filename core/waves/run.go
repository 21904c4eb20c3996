package waves

import (
	"context"
	"errors"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
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
	if ctx.Err() != nil { // the run was starting when it was cancelled
		return context.Cause(ctx)
	}
	op := core.OperationFrom(ctx)
	op.SetKey(r.trigger.Key)
	op.Set(ValueStage, r.stage.Name)
	err = errPanicked
	defer func() {
		switch {
		case err == nil:
			e.raise(r, nil, r.stage.onComplete...)
		case ctx.Err() != nil && !guard.Is(context.Cause(ctx), core.ErrTimeout):
			e.raise(r, err, Cancelled)
		default:
			e.raise(r, err, r.stage.onFailure...)
			e.raise(r, err, Failed)
		}
	}()
	e.raise(r, nil, r.stage.onStart...)
	if cause := context.Cause(ctx); cause != nil { // a handler may have raised the early exit
		return cause
	}
	return r.stage.Work(ctx, r.trigger)
}

// raise raises signals about a run.
func (e *Executor) raise(r run, err error, kinds ...core.Kind[Event]) {
	for _, k := range kinds {
		k.Raise(e.Sink().Because(r.trigger), r.trigger.Key, Event{Stage: r.stage.Name, Err: err, by: r.stage})
	}
}
