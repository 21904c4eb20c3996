// Package telemetry shows coordinators and signals in OpenTelemetry: a span for each
// operation, counters of signals, and the Stats of coordinators and other parts as metrics.
// It uses the API of OpenTelemetry only; the program chooses the SDK and the exporters.
//
//	tel, err := telemetry.New(sink, telemetry.Options{Signals: "error.*, circuit.*"})
//	if err != nil {
//		return err
//	}
//	defer tel.Close()
//
//	c, err := core.NewCoordinator(telemetry.Wrap(tel, callAPI), core.Options{Name: "api", Sink: sink})
//	...
//	tel.ObserveCoordinator(c)
//
// # Spans
//
// A span has the name of the coordinator. It begins with the function that [Wrap] was given
// and ends when that returns, so Wrap goes around everything else: around retry.Wrap, for
// example. Its parent is the span in the context that the item was enqueued with. If the item
// was enqueued because of a signal (core.CausedBy), and the operation that raised it has a
// span as well, the new span is linked to that one: the last 1,000 spans are remembered for
// this, for 5 minutes. Each signal that the operation raised, and did not take back, is an
// event of the span, with the signal's time. One whose first segment is "error", such as
// "error", "error.db" and "error:503", but not "errorless", is an event "exception" as well.
// An error of the function is recorded, and gives the span the status Error, unless the
// operation was cancelled; a panic gives it that status as well. The attributes are
// "ephemeral.operation", the id, "ephemeral.key" and "ephemeral.cancelled".
//
// A span that is not recorded, because nothing exports it or because it was not sampled, gets
// none of this.
//
// An item that is enqueued with the context of a body keeps that context in memory, with its
// span and those of all operations before it. A chain of operations that never ends should
// enqueue with another context: trace.ContextWithSpan(context.Background(), span).
//
// # Signals
//
// The counter "ephemeral.signals" counts the signals that match [Options.Signals], with these
// attributes:
//
//   - "family": the first alternative of the pattern that matches;
//   - "class": "exception" if the first segment of the name is "error", "metric" if it is
//     "perf", else "event";
//   - "signal": the name up to the first colon. When a family has [Options.MaxNames] names,
//     further names are counted together, as "other".
//
// The raiser counts, before Raise returns. So there is no queue that could be full, and nothing
// is dropped.
//
// # Metrics
//
// [Telemetry.ObserveCoordinator] and [Observe] export each number in a Stats as
// "ephemeral.KIND.FIELD", with the attribute "name". Unsigned integers become counters, other
// integers and booleans up-down-counters, floats and durations (in seconds) gauges. Stats is
// read once at the beginning, and when metrics are collected.
package telemetry
