// Package fixedwork is a pool: it does a piece of work for every item it is given,
// a fixed number of them at once, in the order in which they came, and can say what
// it is doing.
//
//	pool, err := fixedwork.New(resize, fixedwork.Options{MaxConcurrency: 4})
//	if err != nil {
//		return err
//	}
//	defer pool.Close()
//	for _, image := range images {
//		if _, err := pool.Enqueue(ctx, image); err != nil {
//			return err
//		}
//	}
//	return pool.Drain(ctx)
//
// An item is accepted, waits its turn, runs and is finished. It is an operation, which
// Lookup and Operations still show for a while, with its outcome and the signals and values
// of the work (see [core.OperationFrom]). Both the queue and the finished operations are
// bounded: when the queue is full, Enqueue waits for room, so that a fast producer runs at
// the pace of the work, and TryEnqueue refuses; the newest finished operations are kept.
// An operation that runs is never forgotten.
//
// If every item is another piece of work, let the items be functions, and let the work
// call them.
//
// There are five ways to end a pool, the same as everywhere in this library. Complete
// ends the intake. Flush waits for the items that were accepted. Drain does both, which is
// how a program normally stops. Stop cancels items that wait, and waits for items that
// run. Close also cancels the contexts of items that run, and returns when no work runs any
// more. An idle pool owns no goroutine, so a pool that is not closed is garbage like
// anything else.
//
// The pool is the smallest of the coordinators that package core can make. Use
// [core.NewCoordinator] itself for lanes, groups, and signals that hold items back or
// refuse them.
package fixedwork
