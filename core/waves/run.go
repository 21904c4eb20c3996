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

// run is the work of the coordinator: one run of a stage.
func (e *Executor) run(ctx context.Context, r run) (err error) {
	op := core.OperationFrom(ctx)
	if exit := e.exit.Load(); exit != nil {
		e.coordinator.Cancel(op.ID(), exit) // it came from the queue when the exit was being taken
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	op.SetKey(r.trigger.Key)
	op.Set(ValueStage, r.stage.Name)
	returned := false
	defer func() {
		switch {
		case !returned:
			e.fail(r, errPanicked)
		case err == nil:
			e.raise(r, nil, r.stage.onComplete...)
		case ctx.Err() != nil:
			e.raise(r, err, kindCancel)
		default:
			e.fail(r, err)
		}
	}()
	e.raise(r, nil, r.stage.onStart...)
	if err = context.Cause(ctx); err == nil { // a handler may have ended it all
		err = r.stage.Work(ctx, r.trigger)
	}
	returned = true
	return err
}

var (
	kindFail   = core.NewKind[Event](SignalFail)
	kindCancel = core.NewKind[Event](SignalCancel)
	// The panic itself is recovered further out, where the operation ends.
	errPanicked = errors.New("waves: the work panicked or ended its goroutine")
)

func (e *Executor) fail(r run, err error) {
	e.raise(r, err, r.stage.onFailure...)
	e.raise(r, err, kindFail)
}

// raise says on the sink what has become of a run.
func (e *Executor) raise(r run, err error, kinds ...core.Kind[Event]) {
	for _, k := range kinds {
		k.Raise(e.sink.Because(r.trigger), r.trigger.Key, Event{Stage: r.stage.Name, Err: err, by: r.stage})
	}
}
