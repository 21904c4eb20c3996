// Package fixedwork is a worker pool: it calls a function for each item, a fixed number at once,
// in the order of the calls of Enqueue.
//
//	pool, err := fixedwork.New(resize, core.Options{MaxConcurrency: 4})
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
// Each item is an operation. Lookup and Operations show it while it waits and runs, and for a
// while after its end, with its result and with the signals and values of the work (see
// [core.OperationFrom]). The queue is bounded: if it is full, Enqueue waits for room, and
// TryEnqueue refuses. The number of finished operations that are shown is bounded, too.
//
// If each item needs another function, let the items be functions, and let the work call them.
//
// There are five ways to end a pool, the same as everywhere in this library. Complete ends the
// intake. Flush waits for the items that were accepted. Drain does both, and is the usual way.
// Stop cancels items that wait, and waits for items that run. Close also cancels the contexts of
// items that run, and returns when no work runs any more. An idle pool has no goroutine, so the
// garbage collector can remove a pool that was not closed, unless a shared sink refers to it.
//
// A pool is a [core.Coordinator], and New takes all of its options, such as lanes, classes, and
// signals that defer or refuse items.
package fixedwork
