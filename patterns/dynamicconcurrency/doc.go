// Package dynamicconcurrency lets signals change how many items run at once: "load.high"
// doubles the limit, "load.low" halves it.
//
//	elastic, err := dynamicconcurrency.New(callAPI, dynamicconcurrency.Scale{Min: 1, Max: 32}, core.Options{Sink: sink})
//	...
//	sink.Raise("load.high") // 1 -> 2
//	sink.Raise("load.high") // 2 -> 4
//
// Each signal is one step. It does not matter how long the signal stays on the sink. After a
// higher limit, more items start immediately. A lower limit cancels nothing: it takes effect
// when running items end. For each change, [Increased] or [Decreased] is raised.
//
// If your own code decides, you do not need this package: call SetMaxConcurrency of a
// [core.Coordinator].
package dynamicconcurrency
