// Package logging connects log/slog with signals, in both directions.
//
// A [Handler] raises a signal for each log record, beside the handlers that write it:
//
//	signals := logging.NewHandler(sink, logging.HandlerOptions{Level: slog.LevelWarn})
//	logger := slog.New(slog.NewMultiHandler(base, signals)).With("category", "orders")
//	logger.ErrorContext(ctx, "store failed", "event", "DbFailure", "err", err) // log.error.orders.dbfailure:patherror
//
// All these signals are of one family, [Log], with a [Record] as payload. So code can react to
// errors that are only logged, and gates and monitors can look at them.
//
// A bridge writes signals to a handler of slog, in the background:
//
//	bridge, err := logging.NewBridge(sink, logger.Handler(), logging.BridgeOptions{Pattern: "*.failed"})
//
// Both may use the same sink and the same logger. A record that a bridge writes does not become
// a signal, and a signal that a Handler raises is not written by a bridge: the context of the
// one and the payload of the other say where they come from.
package logging
