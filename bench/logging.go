package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
)

// loggingRows measure a record below the level, and a record that becomes a signal, beside
// a handler of slog that discards the same record.
func loggingRows() []Row {
	return []Row{
		{Name: "op=below", Sides: []Side{logged("ours", 0, slog.LevelDebug, raised), logged("slog-text", 1.2, slog.LevelDebug, text)}},
		{Name: "op=signal", MaxAllocs: 4, Sides: []Side{logged("ours", 0, slog.LevelError, raised), logged("slog-text", 1.5, slog.LevelError, text)}},
	}
}

func raised() slog.Handler {
	return logging.NewHandler(fullSink(signals.SinkOptions{Capacity: small}), logging.HandlerOptions{})
}

func text() slog.Handler { return slog.NewTextHandler(io.Discard, nil) }

// logged logs records with three attributes, with a logger with one attribute.
func logged(name string, goal float64, level slog.Level, handler func() slog.Handler) Side {
	err := errors.New("connection refused")
	return Side{name, goal, func() Body {
		logger, ctx := slog.New(handler()).With("category", "orders"), context.Background()
		return Body{Run: func(n int) {
			for range n {
				logger.LogAttrs(ctx, level, "order store failed",
					slog.String("event", "DbFailure"), slog.Any("err", err), slog.Int("attempt", 3))
			}
		}}
	}}
}
