// Package signallogwatcher calls a function for every signal that matches a pattern, in the
// background, such as to write it to a log or to alert an operator.
//
//	watcher, err := signallogwatcher.New(sink, "error.*", alert, core.Options{})
//	...
//	defer watcher.Close()
//
// The signals that are present when New is called come first, oldest first, and then those
// that are raised. Each is given to the function once, in order, one at a time, on another
// goroutine than that of the raiser, which does not wait. Signals that come faster than the
// function returns wait in a bounded queue; when it is full, the oldest is dropped and
// counted. When the function fails or panics, that is counted and raised, and the next
// signal follows: nothing is repeated.
package signallogwatcher
