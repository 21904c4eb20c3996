// Package backpressure lets a stage of work stop starting items while a later stage has too
// many that wait.
//
// [Watch] looks at the pending items of a coordinator. From a high mark until they are down
// to a low mark it holds a fact on the sink, "backpressure.NAME" with the name of the
// coordinator. [New] makes a coordinator that starts nothing while a signal that matches
// [Pattern] is present: held by Watch, held by other code, or raised:
//
//	db := core.Must(core.NewCoordinator(store, core.Options{Name: "db", Sink: sink}))
//	defer backpressure.Watch(db, backpressure.Watermarks{High: 100, Low: 25})()
//	intake, err := backpressure.New(fetch, core.Options{Sink: sink})
//
// Items that wait keep their order, none is dropped, and running items go on. Enqueue
// accepts items until the queue is full, and then waits: so the pressure reaches the
// producer. Explain says which coordinator is behind it.
//
// Core alone has a simpler form of backpressure: an Enqueue that waits while the queue of
// the next stage is full. Use this package where a stage should leave its items in its
// own queue, where they can be seen, cancelled and ordered, or where several stages share
// the pressure.
package backpressure
