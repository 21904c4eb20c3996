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
// A span has the name of the coordinator. It begins and ends with the function that [Wrap]
// was given. So put Wrap around everything else, for example around retry.Wrap.
//
// The parent of the span is the span in the context that the item was enqueued with. If the
// item was enqueued because of a signal (core.CausedBy), the span has a link to the span of
// the operation that raised the signal. For links, the last 1,000 spans are remembered for 5
// minutes.
//
// Each signal that the operation raised and did not take back is an event of the span, with
// the time of the signal. If the first segment of its name is "error", as in "error.db" and
// "error:503", there is a second event, "exception". An error of the function is recorded. It
// gives the span the status Error, unless the operation was cancelled. A panic gives it this
// status, too. The attributes are "ephemeral.operation" (the id), "ephemeral.key" and
// "ephemeral.cancelled". All this is left out if nothing exports the span, or if it is not
// sampled.
//
// If an item is enqueued with the context of a body, it keeps that context in memory, with
// the spans of all operations before it. If a chain of operations never ends, enqueue with
// another context: trace.ContextWithSpan(context.Background(), span).
//
// # Signals
//
// The counter "ephemeral.signals" counts the signals that match [Options.Signals], with these
// attributes:
//
//   - "family": the first pattern in Signals that matches (not a [core.Family]);
//   - "class": "exception" if the first segment of the name is "error", "metric" if it is
//     "perf", else "event";
//   - "signal": the name up to the first colon. When a family has [Options.MaxNames] names,
//     further names are counted together, as "other".
//
// A signal is counted before Raise returns. So there is no queue, and no signal is dropped.
//
// # Metrics
//
// [Telemetry.ObserveCoordinator] and [Observe] export each number in a Stats as
// "ephemeral.KIND.FIELD", with the attribute "name". Unsigned integers become counters.
// Other integers and booleans become up-down-counters. Floats and durations become gauges;
// durations are in seconds. Stats is called once at the start, and whenever metrics are
// collected.
package telemetry
