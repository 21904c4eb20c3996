// Package reactivefanout runs items through two stages, and slows the first one down while
// the second has too much to do. Each stage has a limit. While too many items wait for the
// second stage, the limit of the first is lowered to its minimum.
//
//	fanout, err := reactivefanout.New(fetch, store, reactivefanout.Options{Concurrency: 8, Downstream: 4, High: 32, Low: 8})
//	if err != nil {
//		return err
//	}
//	defer fanout.Close()
//	id, err := fanout.Enqueue(ctx, request)
//
// The result of the first function is the argument of the second one. Each item that the
// first stage has done reaches the second stage exactly once, even during Drain, because
// Drain ends the first stage before the second. If the queue of the second stage is full,
// the items of the first stage wait for room and keep their slots.
//
// When High items wait for the second stage, the first stage gets its minimum. When only Low
// items wait, it gets its full limit again. Between Low and High nothing changes, so that the
// limit does not change too often.
package reactivefanout
