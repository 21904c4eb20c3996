package logging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// BridgeOptions configure a bridge. The zero value is the default.
type BridgeOptions struct {
	// Pattern selects the signals that are written; "" means "*".
	Pattern string
	// Level says at which level a signal is written; nil means that the first part of the
	// name says it, as in "error.database", or after "log." the second: trace, debug, info,
	// warn, warning, error, critical or fatal, in upper or lower case. Others are at
	// [slog.LevelInfo].
	Level func(core.Signal) slog.Level
	// MaxQueued is how many signals may wait before the oldest is dropped; 0 means 1000,
	// negative means no queue: a signal that comes while one is written is rejected.
	MaxQueued int
	// Name is the source of the signals that the bridge itself raises; "" means "logging".
	Name string
}

// originKey marks the context of what a bridge writes.
type originKey struct{}

// NewBridge writes each signal that is raised on the sink from now on and matches
// [BridgeOptions.Pattern] to h, in order, in the background: as a record with the time of the
// signal, its name as the message, and the signal, without its payload, as the attribute
// "signal". Signals that a [Handler] has raised are left out.
//
// In the Stats of the bridge, Succeeded counts the signals that were written or that h is not
// enabled for, Failed those for which h returned an error or panicked, which are not repeated,
// and Dropped and Rejected those that were never written. It raises its own signals on the sink
// and does not write them. The sink keeps it alive until it is drained, stopped or closed, and
// then has no trace of it.
func NewBridge(sink *core.Sink, h slog.Handler, opts BridgeOptions) (*core.Processor, error) {
	if sink == nil || h == nil {
		return nil, errors.New("logging: NewBridge needs a sink and a handler")
	}
	opts = opts.resolved()
	bridge, err := core.NewProcessor(func(ctx context.Context, s core.Signal) error {
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
	bridge.OnClosed(sink.Subscribe(opts.Pattern, func(s core.Signal) {
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
		o.Level = func(s core.Signal) slog.Level { return levelOf(s.Name) }
	}
	return o
}
