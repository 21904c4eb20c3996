// Package signals has sinks, which keep recent signals, and all that raises signals and senses
// them. It needs no coordinator: a program that only tells its parts what has happened imports
// this package alone.
//
// A [Signal] is a fact with a name, such as "payment.declined". Code raises it on a [Sink]:
//
//		sink := signals.NewSink(signals.SinkOptions{})
//		sink.Subscribe("payment.*", func(s signals.Signal) { ... })
//		sink.RaiseKey("payment.declined", "order 7")
//		if sink.Has("payment.declined") { ... }
//
//	  - [Sink.Subscribe], [Sink.Follow], [Sink.Watch], [Sink.WaitFor] and [Sink.WaitGone] tell when signals come and go.
//	  - [Sink.Has], [Sink.Count], [Sink.Sense] and a [Monitor] look at those that are present.
//	  - [Sink.Hold] raises a signal that stands for a condition, until it is released.
//	  - A [Kind] and a [Family] give signals a payload.
//	  - [Sink.Forward], [Sink.Relay] and [Sink.Import] connect sinks, also those of several processes.
//	  - A [Scope] lets signals leave the sink together with who raised them.
//
// [Match] says what patterns mean. Coordinators of package core raise the signals of their
// operations on a sink, and react to signals with gates. Sinks are bounded, except for held
// signals, and count what they drop. No function of yours is called under a lock.
package signals
