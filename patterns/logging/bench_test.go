package logging_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
)

// handlers are the Handler and one of slog's own.
func handlers() map[string]slog.Handler {
	return map[string]slog.Handler{
		"text":    slog.NewTextHandler(io.Discard, nil),
		"signals": logging.NewHandler(signals.NewSink(signals.SinkOptions{}), logging.HandlerOptions{}),
	}
}

// Run them with: go test -bench . -benchmem -count 10 | benchstat -col .name -
func BenchmarkLog(b *testing.B) {
	err := errors.New("connection refused")
	for name, h := range handlers() {
		logger := slog.New(h).With("category", "orders")
		for level, lv := range map[string]slog.Level{"below": slog.LevelDebug, "error": slog.LevelError} {
			b.Run(level+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					logger.LogAttrs(context.Background(), lv, "order store failed",
						slog.String("event", "DbFailure"), slog.Any("err", err), slog.Int("attempt", 3))
				}
			})
		}
	}
}
