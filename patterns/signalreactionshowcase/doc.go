// Package signalreactionshowcase shows, in one run, the ways to react to signals. They are:
// on the goroutine that raises them (OnSignal), in the background (a Dispatcher), later, by
// a look at the sink, and by gates that defer items (DeferOn) or refuse them (CancelOn).
//
// It is an example to read. Programs do not import it.
package signalreactionshowcase
