// Package signals has signals, and the sinks that keep them. The parts of a program share
// what they know through them. It needs no coordinator; those of package core use it.
//
// A [Signal] is a fact: a name, a key that says what it is about, and a time. Code raises
// signals on a [Sink]. A signal starts nothing: code looks for it ([Sink.Has], [Sink.Sense]),
// counts it ([Monitor]), or is called ([Sink.Subscribe]). A condition that must last is held:
// [Sink.Hold]. A [Kind] is the name of a signal together with the type of its payload. A
// [Scope] raises, holds and retracts for owners, such as connections: what an owner has raised
// leaves the sink with the owner. [Match] says what patterns mean.
//
// Sinks are bounded, except for held signals, and count what they drop. No function of yours
// is called under a lock.
package signals
