package signallogwatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// DefaultPattern is what New watches if its pattern is "".
const DefaultPattern = "error.*"

// SignalFailed is raised when the function returns an error. Its key is the name of the
// signal that the function was called for, which is also its cause. So a watcher that
// watches the failures of another one cannot start an endless loop: a failure that another
// failure caused is not recorded, unless [core.Propagation] permits cycles.
const SignalFailed = "watcher.failed"

// Failed is the kind of SignalFailed.
var Failed = core.NewKind[Failure](SignalFailed)

// Failure is a call that returned an error.
type Failure struct {
	Signal core.Signal
	Err    error
}

// New calls onMatch in the background for every signal of the sink that matches pattern: for
// those present, held ones included, oldest first, and then for those that come. The context
// is that of an operation of the watcher, and ends when the watcher is closed.
//
// The options are those of [core.NewProcessor]. The default of Name is "signallogwatcher",
// that of Sink, where the watcher raises its own signals, is sink, and that of MaxConcurrency
// is 1, so that onMatch is called for one signal after the other. MaxQueued says how many
// signals may wait, by default 1000, before the oldest is dropped.
//
// In the watcher's Stats, Succeeded and Failed count the calls that have ended, and Dropped
// and Rejected the signals that onMatch is not called for. What the watcher itself raises it
// does not watch. A sink keeps the watcher alive until it is drained, stopped or closed, and
// then has no trace of it.
func New(sink *core.Sink, pattern string, onMatch core.Handler, opts core.Options) (*core.Processor, error) {
	if sink == nil || onMatch == nil {
		return nil, errors.New("signallogwatcher: New needs a sink and a function")
	}
	opts.Name = cmp.Or(opts.Name, "signallogwatcher")
	opts.Sink = cmp.Or(opts.Sink, sink)
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, 1)
	watcher, err := core.NewProcessor(func(ctx context.Context, s core.Signal) error {
		err := onMatch(ctx, s)
		if err != nil {
			Failed.Raise(core.OperationFrom(ctx).Because(s), "", Failure{s, err})
		}
		return err
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("signallogwatcher: %w", err)
	}
	watcher.OnClosed(sink.Follow(cmp.Or(pattern, DefaultPattern), watcher.Process))
	return watcher, nil
}
