// Package signalcoordinatedreads lets readers wait while data is updated, without a lock.
// Readers are items of a coordinator that defers on "update.in-progress". An update holds that
// signal.
//
//	reads, err := signalcoordinatedreads.New(query, signalcoordinatedreads.Updates{WaitForReaders: true}, core.Options{Sink: sink})
//	...
//	id, err := reads.Enqueue(ctx, q)    // runs when no update is in progress
//	err = reads.Update(ctx, rebuild)    // readers wait until it returns
//
// Many updates may run at once. Other code can update as well: it holds [SignalInProgress] on
// the same sink. Readers start again when the last update has ended; "update.done" does not
// start them. Updates do not wait for each other. If updates should wait for each other, run
// them in a coordinator with MaxConcurrency 1.
package signalcoordinatedreads
