package signallogwatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Failed is raised when the function returns an error. Its key is the name of the signal
// for which the function was called. That signal is also its cause. So two watchers that watch
// each other's failures cannot start an endless loop: a failure that another failure caused
// is not recorded, unless [signals.Propagation] permits cycles.
var Failed = signals.NewKind[Failure]("watcher.failed")

// Failure is the payload of [Failed]: a call that returned an error.
type Failure struct {
	Signal signals.Signal
	Err    error
}

// New calls onMatch in the background for every signal of the sink that matches pattern. It
// begins with the signals that are present, held ones included, the oldest first. Then it
// follows new signals. The context belongs to an operation of the watcher: it ends when the
// watcher is closed.
//
// The options are the options of [core.NewProcessor]. The default of Name is
// "signallogwatcher". The watcher raises its own signals on Options.Sink, by default on sink.
// The default of MaxConcurrency is 1: onMatch is called for one signal after the other.
// MaxQueued is how many signals may wait, by default 1000. If one more comes, the oldest is
// dropped.
//
// In the watcher's Stats, Succeeded and Failed count the calls that have ended. Dropped and
// Rejected count the signals for which onMatch is not called. The watcher ignores its own
// signals. The sink keeps the watcher in memory until it is drained, stopped or closed.
//
//ephemeral:pattern {pattern}
func New(sink *signals.Sink, pattern string, onMatch core.Handler, opts core.Options) (*core.Processor, error) {
	if sink == nil || onMatch == nil {
		return nil, errors.New("signallogwatcher: New needs a sink and a function")
	}
	opts.Name = cmp.Or(opts.Name, "signallogwatcher")
	opts.Sink = cmp.Or(opts.Sink, sink)
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, 1)
	watcher, err := core.NewProcessor(func(ctx context.Context, s signals.Signal) error {
		err := onMatch(ctx, s)
		if err != nil {
			Failed.Raise(core.OperationFrom(ctx).Because(s), "", Failure{s, err})
		}
		return err
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("signallogwatcher: %w", err)
	}
	watcher.OnClosed(sink.Follow(cmp.Or(pattern, "error.*"), watcher.Process))
	return watcher, nil
}
