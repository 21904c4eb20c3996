// Package durable is a work queue that survives kill -9 and is shared by processes. Items are
// in a database. Items of one key run in order, one at a time in all processes. Lanes and limits hold for
// all processes together.
//
//	store, err := postgres.Open(ctx, pool, postgres.Options{}) // of atoms/durable/postgres; or sqlite
//	...
//	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders", MaxCluster: 40})
//	if err != nil {
//		return err
//	}
//	defer orders.Close()
//	...
//	id, err := orders.Enqueue(ctx, order) // returns when the item is on disk
//	...
//	return orders.Run(ctx) // runs items until ctx ends; a producer does not call it
//
// A [Queue] has items of one type. A [Store] keeps them and decides which process runs which:
// [Memory] for tests, and the modules atoms/durable/postgres and atoms/durable/sqlite.
//
// # What is promised
//
//   - When Enqueue has returned nil, the item is not lost.
//   - Items of a key run in the order of their commits. An item starts when the one before it
//     has ended, even if that one is retried, snoozed or delayed. With lanes this order holds
//     within a lane; when an item of a key ends, the next one is taken from the highest lane.
//   - At most MaxCluster items, and Limit of a lane, are claimed at any instant.
//   - An item runs at least once. Its effect happens exactly once if it is committed in the
//     transaction in which the item ends: see postgres.Finish and sqlite.Finish.
//   - Each claim has a higher token than those before ([ClaimFrom]). Only the newest one can
//     end an item. A late end is refused, counted in [Stats] and signalled ([SignalFenced]).
//
// # When a process dies
//
// A process that runs items sends heartbeats to the store (it "beats"). If none has come for
// Options.Lease, other processes get its items. A process that cannot beat cancels its bodies
// before that, with the cause [ErrLeaseLost]. It measures that time with its monotonic clock, so
// it does not matter whether the clocks of the hosts are right. A process that was paused for
// longer than a lease goes on for a moment with items that it has lost: the ends of these are
// refused, but their effects outside of the database are not, unless the other side checks
// the token.
//
// # How an item ends
//
// A body returns nil: the item is done. It returns an error, panics or takes longer than
// Options.Timeout: the item is retried after a pause that doubles, until MaxAttempts. Then, or
// if the error is [Permanent], or if the item cannot be decoded, it is dead: [Queue.Items]
// lists it, [Queue.Again] lets it run again. After [Snooze] it runs later, and the attempt does
// not count. Attempts count when they begin, so an item that kills its process is dead in the
// end.
//
// # Why does it wait?
//
// [Queue.Explain] answers: "behind 2 items of key ada; the first runs on shop-2 for 3s, attempt
// 2 of 8, lease ends in 11s". [Queue.Stats] counts the items of all processes and has the age of
// the oldest one that waits. [Queue.Here] is this process's part, as an ordinary coordinator.
//
// # Shutting down
//
// When the context of Run ends, or [Queue.Stop] is called, the process claims no more, gives
// back what it has not started, and waits for its bodies. [Queue.Close] cancels them and
// gives their items back. Other processes, or the next start, run what has not ended then.
//
// # Not offered
//
// Exactly once outside of the database: there are tokens only. Stopping a body that ignores its
// context. Accepting items while the database is away: Enqueue returns an error. Order across
// keys. Results of items. Several items of a key at once. Workflows and replay.
package durable
