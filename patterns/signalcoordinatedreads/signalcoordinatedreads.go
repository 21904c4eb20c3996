package signalcoordinatedreads

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of updates. Their key is the name of the coordinator of the readers.
const (
	// SignalInProgress is held on the sink while an update runs. Meanwhile, no reader starts.
	SignalInProgress = "update.in-progress"
	// SignalWaiting is raised on the sink when the first reader begins to wait during an
	// update. After that, it is raised again only when no reader was pending meanwhile.
	SignalWaiting = "read.waiting"
)

// Done is raised on the sink when an update has ended, after [SignalInProgress] was released. The
// key is the name of the coordinator of the readers.
var Done = signals.NewKind[Ended]("update.done")

// Ended is the payload of [Done].
type Ended struct {
	Err error // error of the update; nil if it succeeded
}

// errPanicked is the error in [Ended] if the update has panicked or has called
// runtime.Goexit. [Reads.Update] does not recover the panic.
var errPanicked = errors.New("signalcoordinatedreads: the update has panicked")

// Updates say how updates run. The zero value is the default.
type Updates struct {
	// WaitForReaders lets an update wait for the readers that already run. By default, the
	// update runs at the same time.
	WaitForReaders bool
}

// Reads is a coordinator of readers that wait while updates run. Make one with New; all
// methods are safe for concurrent use.
type Reads[T any] struct {
	*core.Coordinator[T]
	updates Updates
}

// New makes a coordinator of readers. It adds [SignalInProgress] to Options.DeferOn.
// Options.ResumeOn must be empty. The default of Name is "signalcoordinatedreads".
//
// A shared sink keeps the coordinator in memory until it is drained, stopped or closed.
func New[T any](read core.Work[T], updates Updates, opts core.Options) (*Reads[T], error) {
	if opts.ResumeOn != "" {
		return nil, fmt.Errorf("signalcoordinatedreads: Options.ResumeOn is %q, but must be empty: readers go on when the last update has ended", opts.ResumeOn)
	}
	opts.Name = cmp.Or(opts.Name, "signalcoordinatedreads")
	opts.DeferOn += "," + SignalInProgress
	c, err := core.NewCoordinator(read, opts)
	if err != nil {
		return nil, fmt.Errorf("signalcoordinatedreads: %w", err)
	}
	return &Reads[T]{c, updates}, nil
}

// Update calls update on the same goroutine, and returns its error. Until Update returns, no
// reader starts. Updates do not wait for each other.
//
// With [Updates.WaitForReaders], Update first waits until the running readers have ended. If
// ctx ends during this wait, Update returns the cause of ctx, and update is not called. If a
// reader calls Update, it gets [core.ErrWouldDeadlock].
func (r *Reads[T]) Update(ctx context.Context, update func(context.Context) error) error {
	sink, err := r.Sink(), errPanicked
	release := sink.Hold(SignalInProgress, r.Name(), 0)
	stop := r.OnPending(1, 0, func(over bool) {
		if over {
			sink.RaiseKey(SignalWaiting, r.Name())
		}
	})
	defer func() {
		stop()
		release()
		Done.Raise(sink, r.Name(), Ended{err})
	}()
	if r.updates.WaitForReaders {
		if err = r.waitForReaders(ctx); err != nil {
			return fmt.Errorf("signalcoordinatedreads: the update has not begun: %w", err)
		}
		err = errPanicked
	}
	err = update(ctx)
	return err
}

// waitForReaders waits until the readers that run now have ended.
func (r *Reads[T]) waitForReaders(ctx context.Context) error {
	if r.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	for reader := range r.Operations(core.OperationQuery{Status: core.StatusRunning | core.StatusSuspended}) {
		_ = r.Wait(ctx, reader.ID) // its error is not ours
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
