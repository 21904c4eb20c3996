// Package lastwords keeps a record of operations when they leave their coordinator's
// window.
//
// A coordinator shows finished operations for a while and then forgets them. A
// [Journal] makes a small [Note] of each operation that leaves and gives it to a
// function that stores it, in a file, a table or a log:
//
//	journal, err := lastwords.New(orders, func(ctx context.Context, n lastwords.Note) error {
//		return store.Append(ctx, n)
//	}, core.Options{})
//
// The function is called for one note at a time, in the order in which the operations
// leave. The coordinator never waits for it: notes are queued, and when the queue is
// full the oldest one is dropped. A note that was not stored is counted and raised in a
// signal, [Relay.Failed]. To try again first, retry inside the function.
//
// An operation leaves the window when newer ones push it out, when it is too old, when
// it is evicted, and when the coordinator is closed. To have a note of every operation,
// end the coordinator first and the journal after it, with a deadline:
//
//	orders.Drain(ctx)  // all work is done
//	orders.Close()     // the rest of the window leaves
//	journal.Drain(ctx) // all notes are stored
//	journal.Close()    // notes that ctx left no time for are dropped and counted
//
// A journal is a [Relay] of notes. Use a Relay itself to store values of your own type.
package lastwords
