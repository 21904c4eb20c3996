// Package signalreactionshowcase shows, in one run, the ways to react to signals: at once on
// the goroutine that raises them (OnSignal), in the background (a Dispatcher), by looking at
// the sink later, and by gates that hold items up (DeferOn) or refuse them (CancelOn).
//
// It is code to read, and to run in a test.
package signalreactionshowcase
