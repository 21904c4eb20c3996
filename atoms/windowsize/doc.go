// Package windowsize changes the window of a sink while the program runs: how many signals the
// sink remembers, and for how long. Commands are signals on the sink itself.
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
// So a part of the program that has only the sink can ask for a longer history, or for less
// memory. Code that has the sink and needs no bounds calls [signals.Sink.Resize].
//
// The window stays between the bounds of [Options]. When it shrinks, the oldest signals go
// first. Held signals and monitors do not depend on the window.
//
// # Commands
//
// A command is a signal such as "window.size.set:500". A prefix is allowed if it ends with a dot
// or a colon: "app.window.size.set:200". If a command has a key, it is for the Resizer of that
// name. If it has no key, it is for all Resizers of the sink. A signal of an operation that has
// a key has the same key. So inside an operation, raise commands with RaiseKey and the name of
// the Resizer.
//
// The value of window.size is a whole number of signals. A number that is too large counts as
// the largest. The value of window.time is a duration as in [time.ParseDuration], in upper or
// lower case ("90s", "1h30m", "500MS"), or a clock time ("00:05:00", "00:00:07.5"), optionally
// with days ("1.12:00:00"). Clock times have at most 23 hours. A number without a unit is
// rejected.
//
// The answer to a command is a signal of the family [Events], such as window.size.applied. Its
// payload is an [Event].
package windowsize
