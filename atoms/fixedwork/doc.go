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
// An item is accepted, waits its turn, runs and is finished; it is then an operation
// that Lookup and Operations still show for a while, with its outcome and whatever
// the work said about it (see [core.OperationFrom]). The pool keeps a bounded number
// of both: when as many items wait as may, Enqueue waits for room, so that a fast
// producer runs at the pace of the work, and TryEnqueue refuses; of what is finished
// the newest are kept. What runs is never forgotten.
//
// Where every item is another piece of work, the items are functions, and the work
// calls the one it is given.
//
// There are four ways to come to an end, the same as everywhere in this library.
// Complete lets nothing more in. Flush waits for what was accepted. Drain does both,
// which is how a program normally stops. Close does not wait for the work: it
// cancels what runs, through the context the work was given, accounts for what
// waits as cancelled, and returns when no work runs any more. An idle pool owns no
// goroutine, so one that is just forgotten is garbage like anything else.
//
// The pool is the smallest of the coordinators that package core can make. Use
// [core.NewCoordinator] itself for what a pool does not do: limits that change,
// signals that hold items back or refuse them, and pinned operations.
package fixedwork
