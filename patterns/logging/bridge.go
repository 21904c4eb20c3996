package logging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// BridgeOptions configure a bridge. The zero value is the default.
type BridgeOptions struct {
	// Pattern selects the signals that are written; "" means "*".
	//
	//ephemeral:pattern
	Pattern string
	// Level returns the level of the record for a signal. nil means [LevelOf] the signal's
	// name: error for "error.database" and "job.failed", warn for "schedule.missed".
	Level func(signals.Signal) slog.Level
	// MaxQueued is how many signals may wait. If one more comes, the oldest is dropped. 0
	// means 1000. Negative means no queue: a signal is rejected if it comes while the bridge
	// writes another one.
	MaxQueued int
	// Name is the source of the signals that the bridge itself raises; "" means "logging".
	//
	//ephemeral:none
	Name string
}

// originKey marks the context of a record that a bridge writes.
type originKey struct{}

// NewBridge starts a bridge. From now on, it writes each signal that is raised on the sink
// and matches [BridgeOptions.Pattern] to h, in order and in the background. It does not write
// the signals of a [Handler], nor its own. The record has the time of the signal. Its message
// is the name of the signal. Its attribute "signal" is the signal without the payload.
//
// In the Stats of the bridge, Succeeded counts the signals that were written, and those for
// whose level h is not enabled. Failed counts those for which h returned an error or panicked:
// they are not written again. Dropped and Rejected count signals that were never written. The
// bridge raises its own signals on the sink. Drain, Stop or Close end it; until then, the sink
// keeps it alive.
func NewBridge(sink *signals.Sink, h slog.Handler, opts BridgeOptions) (*core.Processor, error) {
	if sink == nil || h == nil {
		return nil, errors.New("logging: NewBridge needs a sink and a handler")
	}
	opts = opts.resolved()
	bridge, err := core.NewProcessor(func(ctx context.Context, s signals.Signal) error {
		ctx, level := context.WithValue(ctx, originKey{}, true), opts.Level(s)
		if !h.Enabled(ctx, level) {
			return nil
		}
		r := slog.NewRecord(s.Time, level, s.Name, 0)
		r.AddAttrs(slog.Any("signal", s))
		return h.Handle(ctx, r)
	}, core.Options{Name: opts.Name, Sink: sink, MaxConcurrency: 1, MaxQueued: opts.MaxQueued})
	if err != nil {
		return nil, fmt.Errorf("logging: %w", err)
	}
	bridge.OnClosed(sink.Subscribe(opts.Pattern, func(s signals.Signal) {
		if _, logged := s.Payload().(Record); !logged {
			bridge.Process(s)
		}
	}))
	return bridge, nil
}

func (o BridgeOptions) resolved() BridgeOptions {
	o.Pattern = cmp.Or(o.Pattern, "*")
	o.Name = cmp.Or(o.Name, "logging")
	if o.Level == nil {
		o.Level = func(s signals.Signal) slog.Level {
			level, _ := LevelOf(s.Name)
			return level
		}
	}
	return o
}
