// Package telemetry shows coordinators and signals in OpenTelemetry, as spans, counters and
// metrics. There is a span for each operation, a counter of signals, and the Stats of coordinators
// and other parts are metrics. Names, keys and texts of errors are valid UTF-8 of at most 1,000 bytes:
// longer ones are cut, and invalid bytes become U+FFFD. It uses the API of OpenTelemetry only; the program chooses the SDK
// and the exporters.
//
//	tel, err := telemetry.New(sink, telemetry.Options{Signals: "error.*, circuit.*"})
//	if err != nil {
//		return err
//	}
//	defer tel.Close()
//
//	c, err := core.NewCoordinator(telemetry.Wrap(tel, callAPI), core.Options{Name: "api", Sink: sink})
//	...
//	err = tel.ObserveAll(c, cache, limiter, queue)
//
// # Spans
//
// A span has the name of the coordinator. It begins and ends with the function that [Wrap]
// was given. So put Wrap around everything else, for example around retry.Wrap.
//
// The parent of the span is the span in the context of the item's Enqueue. If the item was
// enqueued because of a signal (signals.CausedBy), the span has a link to the span of the
// operation that raised the signal. For links, the last 1,000 spans are remembered for 5
// minutes.
//
// Each signal that the operation raised and did not take back is an event of the span, with
// the time of the signal. If the first segment of its name is "error", as in "error.db" and
// "error:503", there is a second event, "exception". An error of the function is recorded. It
// gives the span the status Error, unless the operation was cancelled. A panic gives it this
// status, too. An error that stands for no failure (see guard.Failed of core/guard), such as
// durable.Snooze, leaves the status alone: its text is the attribute "ephemeral.outcome". The
// other attributes are "ephemeral.operation" (the id), "ephemeral.key" and
// "ephemeral.cancelled". All this is left out if no exporter takes the span, or if the span
// is not sampled.
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
//   - "family": the first pattern in Signals that matches (not a [signals.Family]);
//   - "class": "exception" if the first segment of the name is "error", "metric" if it is
//     "perf", else "event";
//   - "signal": the name up to the first colon. When a family has [Options.MaxNames] names,
//     further names are counted together, as "other".
//
// A signal is counted before Raise returns. So there is no queue, and no signal is dropped.
//
// # Metrics
//
// [Telemetry.ObserveAll], [Telemetry.ObserveCoordinator] and [Observe] export each number in a
// Stats as "ephemeral.KIND.FIELD", with the attribute "name". Names and units follow the semantic
// conventions of OpenTelemetry. FIELD is the name of the field in JSON, with underscores: the
// field maxAge becomes "max_age". A struct in a Stats adds its own name: "loads.failed".
//
//	unsigned integer  counter          {count}
//	integer           up-down-counter  {count}
//	boolean           up-down-counter  none; 1 is true
//	duration          gauge            s
//	float             gauge            none
//
// The elements of a map or of a list have one more attribute. Its key is the name of the type of
// the map's keys, or of the element without "Stats": "state" for a map by State, "lane" for a list
// of LaneStats, or "key" if there is no such name. Its value is the key of the map, or the field
// Name of the element. So the lanes of a coordinator become "ephemeral.coordinator.lanes.pending"
// and so on, with the attributes "name" and "lane". Left out are texts, times, pointers, numbers
// with a named type (ids), fields that JSON leaves out, and lists without a field Name.
//
// Stats is called whenever metrics are collected. A durable queue asks its store: its Stats gets
// the context of the collection, and its error goes to the reader.
package telemetry
