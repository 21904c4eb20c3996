// Package windowsize changes how much a sink remembers while the program runs: how many
// signals, and for how long. Commands are signals on the sink itself.
//
//	resizer, err := windowsize.New(sink, windowsize.Options{})
//	if err != nil {
//		return err
//	}
//	defer resizer.Close()
//
//	sink.Raise(windowsize.CommandSizeIncrease + ":100")
//	sink.Raise(windowsize.CommandTimeSet + ":5m")
//
// So a part of a program that needs a longer history for a while, or that sees memory run
// short, can ask for a change without a reference to the [Resizer]. The methods of the
// Resizer do the same as the commands.
//
// The window stays between the bounds of [Options]. When it shrinks, the oldest signals go
// first. Held signals, monitors, and what gates have already seen do not depend on the
// window.
//
// # Commands
//
// A command is a signal named like "window.size.set:500". Text may come before it if a dot
// or a colon separates the two, as in the names that [core.Sink.Scoped] makes; see
// [core.ParseCommand]. A command with a key is for the Resizer of that name. A command
// without a key is for all Resizers of the sink. If an operation has a key, its signals have
// that key too: inside an operation, raise commands with RaiseKey and the name of the
// Resizer, by default "windowsize".
//
// The payload of window.size is a whole number of signals. A number that is too large counts
// as the largest. The payload of window.time is a duration as [time.ParseDuration] reads it,
// in upper or lower case ("90s", "1h30m", "500MS"), or a clock time ("00:05:00", "00:00:07.5",
// "1.12:00:00" with days). Hours on the clock end at 23. A number without a unit is rejected.
//
// Every command is answered by a signal: [SignalSizeApplied], [SignalTimeApplied],
// [SignalSizeRejected] or [SignalTimeRejected]. Its payload says what has changed, or why
// the command was rejected.
package windowsize
