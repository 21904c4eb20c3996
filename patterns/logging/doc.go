// Package logging raises a signal for each record of log/slog, and writes signals to
// log/slog.
//
// A [Handler] raises a signal for each log record. Use it beside the handlers that write
// the records:
//
//	signals := logging.NewHandler(sink, logging.HandlerOptions{Level: slog.LevelWarn})
//	logger := slog.New(slog.NewMultiHandler(base, signals)).With("category", "orders")
//	logger.ErrorContext(ctx, "store failed", "event", "DbFailure", "err", err) // log.error.orders.dbfailure:patherror
//
// These signals are of the family [Log], with a [Record] as payload. So handlers, gates and
// monitors can react to errors that are only logged.
//
// A bridge, made with [NewBridge], writes signals to a handler of slog in the background:
//
//	bridge, err := logging.NewBridge(sink, logger.Handler(), logging.BridgeOptions{Pattern: "*.failed"})
//
// Both may use the same sink and the same logger. A Handler ignores records that a bridge
// writes: their context is marked. A bridge does not write signals that a Handler raises:
// their payload is a Record.
package logging
