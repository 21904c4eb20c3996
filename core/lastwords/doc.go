// Package lastwords writes down what is worth remembering of operations when they
// leave their coordinator's window.
//
// A coordinator shows finished operations for a while and then forgets them. A
// [Journal] makes a small [Note] of each one that goes and hands it to a function
// that keeps it, in a file, a table or a log:
//
//	journal, err := lastwords.New(orders, func(ctx context.Context, n lastwords.Note) error {
//		return store.Append(ctx, n)
//	}, lastwords.Options{})
//
// The function is called for one note at a time, in the order in which the
// coordinator tells of them. The coordinator never waits for it: notes queue up, and
// when the queue is full the oldest one is dropped and counted. What could not be
// persisted is counted as well, and raised as a signal, [Failed], if there is a
// sink; to try again first, retry inside the function.
//
// An operation leaves the window when newer ones push it out, when it gets too old,
// when it is evicted, and when the coordinator is closed. To have a note of every
// operation, end the coordinator first and the journal after it:
//
//	orders.Drain(ctx)  // all work is done
//	orders.Close()     // the rest of the window leaves
//	journal.Drain(ctx) // all notes are persisted
package lastwords
