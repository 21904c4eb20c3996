// Package signallogwatcher calls a function in the background for every signal that matches a
// pattern, for example to alert an operator.
//
//	watcher, err := signallogwatcher.New(sink, "error.*", alert, core.Options{})
//	...
//	defer watcher.Close()
//
// The function first gets the signals that are present when New is called, the oldest first.
// Then it gets new signals. It is called once for each signal, in order and one at a time. The
// goroutine that raises a signal does not wait for it. Signals wait in a bounded queue. If the
// queue is full, the oldest signal is dropped and counted. If the function returns an error or
// panics, the watcher counts that and raises a signal. It does not call the function again for
// the same signal.
package signallogwatcher
