// Package echo records the last words of operations: what they said of themselves, in
// signals with a payload, is handed to a function when they leave their coordinator's
// window.
//
// An operation raises what is worth keeping. When a coordinator forgets it, a
// [Recorder] makes an [Entry] of these signals, and hands it on:
//
//	var Captured = core.NewKind[LastState]("echo.capture")
//
//	orders, err := core.NewCoordinator(func(ctx context.Context, o Order) error {
//		Captured.Raise(core.OperationFrom(ctx), o.ID, LastState{o.ID, "archived"})
//		return nil
//	}, core.Options{})
//	...
//	rec, err := echo.New(orders, Captured, repo.Append, echo.Options{})
//
// Only what an operation raised itself, and did not take back, is among its last
// words; of a signal raised on the sink nobody knows whose it is. A recorder keeps
// nothing while an operation lives, because the coordinator does: the newest 1000
// signals of each.
//
// Entries are delivered one at a time, in the order in which the coordinator tells of
// its operations. It never waits for that: entries queue up, and when the queue is
// full the oldest one is dropped. An entry that was dropped, or whose delivery
// failed, is counted and handed out in a signal, [SignalFailed]. To try again first,
// wrap the function: retry.Wrap(r, repo.Append).
//
// An operation leaves the window when newer ones push it out, when it gets too old,
// when it is evicted, and when the coordinator is closed. To have the last words of
// all, end the coordinator first and the recorder after it:
//
//	orders.Drain(ctx) // all work is done
//	orders.Close()    // the rest of the window leaves
//	rec.Drain(ctx)    // all entries are delivered
//
// # Other memories
//
// [core.Coordinator.Echoes] shows the signals of operations that have left not long
// ago, without payloads' types, and keeps them for a minute: to look at. Package
// core/lastwords writes down of every operation that it was there and how it ended,
// as text: a journal. A recorder hands on what the operations themselves chose to
// say, typed, and of those only that said something: for an archive or an audit.
package echo
