// Package signalcoordinatedreads lets readers wait while something is updated, without a
// lock: readers are the items of a coordinator that defers on "update.in-progress", and an
// update holds that fact.
//
//	reads, err := signalcoordinatedreads.New(query, signalcoordinatedreads.Updates{WaitForReaders: true}, core.Options{Sink: sink})
//	...
//	id, err := reads.Enqueue(ctx, q)    // runs when no update is in progress
//	err = reads.Update(ctx, rebuild)    // readers wait until it returns
//
// Any number of updates may run at once, also those of other code that holds
// [SignalInProgress] on the same sink. Readers go on when the last of them has ended:
// "update.done" is a report, and the end of one update does not let readers in beside
// another. Updates do not wait for each other; give them a coordinator of their own with
// MaxConcurrency 1 if they should.
package signalcoordinatedreads
