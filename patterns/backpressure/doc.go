// Package backpressure stops a stage of work from starting items while a later stage has too
// many pending items.
//
// [Watch] counts the pending items of a coordinator. When their number reaches the high mark,
// it holds the signal "backpressure.NAME" on the sink, with the name of the coordinator. When
// their number falls to the low mark, it releases the signal. [New] makes a coordinator that
// starts no item while a signal is present that matches [Pattern]. Watch or other code may
// have held or raised it:
//
//	db := core.Must(core.NewCoordinator(store, core.Options{Name: "db", Sink: sink}))
//	defer backpressure.Watch(db, backpressure.Watermarks{High: 100, Low: 25})()
//	intake, err := backpressure.New(fetch, core.Options{Sink: sink})
//
// Items that wait keep their order. No item is dropped, and running items go on. Enqueue
// accepts items until the queue is full, and then waits. So the producer becomes slower, too.
// Explain names the signal, and with it the coordinator that is too slow.
//
// A simpler form of backpressure needs only core: Enqueue waits while the queue of the next
// stage is full. Use this package if items should wait in the queue of the first stage, where
// you can see, cancel and order them, or if several stages should stop together.
package backpressure
