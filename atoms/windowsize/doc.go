// Package windowsize lets signals change how much a sink remembers: how many signals,
// and for how long.
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
// So a part of a program that needs a longer history for a while, or notices that memory
// runs short, can say so on the sink that all share, and need not know who owns it. A
// [Resizer] also has methods that do the same for those who have it.
//
// Whatever is asked for, the window stays between the bounds of [Options]. When it
// shrinks, the oldest signals go first. What holds for a sink holds here: facts that are
// held, monitors, and what gates have noticed do not depend on the window.
//
// # Commands
//
// A command is a signal named like "window.size.set:500". There may be text in front of
// it, with a dot between, as [core.Sink.Scoped] makes it; see [core.ParseCommand]. With a
// key it is meant for the Resizer of that name, without one for every Resizer of the
// sink. The signals of an operation that has a key have that, unless they are given
// another: it commands with RaiseKey and the name of the Resizer, by default "windowsize".
//
// What follows the colon is, for window.size, a whole number of signals. For window.time
// it is a duration, in hours, minutes, seconds and milliseconds ("90s", "1h30m",
// "500MS"), or as on a clock ("00:05:00", "1.12:00:00" with days, "00:00:07.5"); a bare
// number is not one, for want of a unit. What is too large counts as the largest there
// is.
//
// Every command is answered by a signal, [SignalSizeApplied] or one of those beside it,
// which says what has changed or what was wrong.
package windowsize
