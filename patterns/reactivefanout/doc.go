// Package reactivefanout runs items through two stages, each with a limit. While many items
// wait for the second stage, the first one shrinks to its minimum, and it grows again when
// they are few.
//
//	fanout, err := reactivefanout.New(fetch, store, reactivefanout.Options{Concurrency: 8, Downstream: 4, High: 32, Low: 8})
//	if err != nil {
//		return err
//	}
//	defer fanout.Close()
//	id, err := fanout.Enqueue(ctx, request)
//
// The first function returns what the second one gets. Each item that the first stage has
// done reaches the second exactly once, also during Drain, which ends the first stage
// before the second. If the second stage has no room, the items of the first stage wait for
// it in their slots.
//
// Nothing has to happen for the first stage to grow again: it does so when the backlog of
// the second is down to Low. Between Low and High nothing changes, so that the limit does
// not flap.
package reactivefanout
