// Package dynamicconcurrency lets signals change how many items run at once: "load.high"
// doubles the limit, "load.low" halves it.
//
//	elastic, err := dynamicconcurrency.New(callAPI, dynamicconcurrency.Scale{Min: 1, Max: 32}, core.Options{Sink: sink})
//	...
//	sink.Raise("load.high") // 1 -> 2
//	sink.Raise("load.high") // 2 -> 4
//
// Each signal is one step, however long it stays on the sink. A higher limit lets items
// start at once. A lower one cancels nothing: it takes effect as running items finish. Each
// change of the limit is a signal as well, [SignalIncreased] or [SignalDecreased].
//
// What New returns is a [core.Coordinator]. Code that decides by itself needs only its
// SetMaxConcurrency.
package dynamicconcurrency
