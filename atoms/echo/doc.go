// Package echo stores the signals with payloads that operations raised, when the
// operations leave their coordinator's window.
//
// An operation raises what is worth keeping. When the coordinator forgets the operation, a
// [Recorder] makes an [Entry] of these signals, and delivers it to a function:
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
// Only signals that an operation raised itself, and did not retract, are captured: a
// signal that is raised on the sink belongs to no operation. A recorder keeps nothing
// while an operation lives, because the coordinator does: the newest 1000 signals of
// each.
//
// Entries are delivered one at a time, in the order in which the operations leave. The
// coordinator never waits for that: entries are queued, and when the queue is full the
// oldest one is dropped. An entry that was not delivered is counted and raised in a
// signal, [SignalFailed]. To try again first, wrap the function: retry.Wrap(r, repo.Append).
//
// An operation leaves the window when newer ones push it out, when it is too old, when
// it is evicted, and when the coordinator is closed. To have entries of all operations,
// end the coordinator first and the recorder after it, with a deadline:
//
//	orders.Drain(ctx) // all work is done
//	orders.Close()    // the rest of the window leaves
//	rec.Drain(ctx)    // all entries are delivered
//	rec.Close()       // entries that ctx left no time for are dropped and counted
//
// # Alternatives
//
// [core.Coordinator.Echoes] shows the signals of operations that left not long ago, for a
// minute, to look at. Package core/lastwords stores that every operation was there and
// how it ended, as text: a journal. A recorder stores what the operations chose to say,
// typed, and only of operations that said something: for an archive or an audit.
package echo
