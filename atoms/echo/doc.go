// Package echo delivers signals that operations raised, with their payloads, to a function that
// can store them. It does so when the operations leave the window of their coordinator (the list
// of operations that it shows).
//
// An operation raises signals that are worth keeping. When it leaves the window, a [Recorder]
// makes an [Entry] of these signals, and delivers the entry to a function:
//
//	var Captured = signals.NewKind[LastState]("echo.capture")
//
//	orders, err := core.NewCoordinator(func(ctx context.Context, o Order) error {
//		Captured.Raise(core.OperationFrom(ctx), o.ID, LastState{o.ID, "archived"})
//		return nil
//	}, core.Options{})
//	...
//	rec, err := echo.New(orders, Captured, repo.Append, echo.Options{})
//
// Only signals that an operation raised itself, and did not take back, are captured. A signal
// that is raised on the sink belongs to no operation. Before an operation leaves, the
// coordinator keeps its newest 1000 signals, and the recorder keeps nothing.
//
// Entries are delivered one at a time, in the order in which the operations leave. The
// coordinator never waits for a delivery. Entries are queued, and if the queue is full, the
// oldest one is dropped. If an entry is not delivered, the recorder counts it and raises
// [lastwords.Relay.Failed]. To repeat failed deliveries, wrap the function: retry.Wrap(r, repo.Append).
//
// An operation leaves the window when there are too many newer ones, when it is too old, when
// it is evicted, and when the coordinator is closed. To get the entries of all operations,
// first end the coordinator and then the recorder, with a deadline:
//
//	orders.Drain(ctx) // all work is done
//	orders.Close()    // all operations leave the window
//	rec.Drain(ctx)    // all entries are delivered, or ctx ends
//	rec.Close()       // the other entries are dropped and counted
//
// # Alternatives
//
// To look at the signals of operations that left a short time ago, use
// [core.Coordinator.Echoes]. For a journal of all operations and their results, as text, use
// package core/lastwords. A recorder delivers typed payloads, and only of operations that raised
// them.
package echo
