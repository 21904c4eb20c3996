// Package durable is a work queue that survives kill -9 and is shared by processes. Items are
// in a database. Items of one key run one at a time, in order; with lanes, in order within each
// lane only. This order, lanes and limits hold across all processes.
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
//   - If Enqueue has returned nil, the item is not lost.
//   - Items of a key run in the order of their commits. If an item is retried, snoozed or
//     delayed, later items of its key wait. With lanes this order holds within a lane: when an
//     item of a key ends, the next one is taken from the highest lane.
//   - At most MaxCluster items of the queue, and at most Limit items of a lane or a class, are
//     claimed at the same time. In any time T, at most Rate x T + Burst items of a class are.
//   - An item runs at least once. If its effect is committed in the transaction in which the
//     item ends, it happens exactly once: see postgres.Finish and sqlite.Finish.
//   - Each claim has a higher token than all earlier ones ([ClaimFrom]). Only the newest claim
//     can end an item. A late end is refused, counted in [Stats] and raises [SignalFenced].
//
// # What an item may have of its own
//
// [ItemOptions] of a view ([Queue.With]) or of [Queue.EnqueueAll] give an item a time, a number of attempts, a time limit and
// metadata. With a Unique id, an item is accepted once; with Replace, its newest data takes the place of what waits. SkipIfAlive
// adds a job only if its key has none that waits or runs. Options.Carrier takes the trace of Enqueue to the
// attempts, over processes.
//
// # When a process dies
//
// A process that calls Run is a node of the queue. It sends heartbeats to the store: it beats.
// If none has come for Options.Lease, other processes get its items. If a process cannot beat,
// it cancels its bodies (the functions that run its items) before that, with the cause
// [ErrLeaseLost]. It uses its monotonic clock, so the clocks of the hosts need not be right.
//
// If a process was stopped for longer than its lease, it goes on for a moment with items that
// it has lost. The ends of these items are refused. Their effects outside of the database are
// not refused, unless the other system checks the token.
//
// The store's clock decides about leases, delays and pauses: that of the database server
// (PostgreSQL), or of the host (SQLite). If it is set back by 20 seconds, items that could be claimed
// wait for 20 seconds, and leases last longer. If it is set forward by more than a lease, leases
// are lost. A service that slows the clock down or speeds it up, instead of setting it, causes
// neither.
//
// # How an item ends
//
// If the body returns nil, the item is done. If it returns an error, panics or takes longer
// than Options.Timeout, the item is retried after a pause. The pause doubles each time, up to a day. An item
// is dead after MaxAttempts, by default 25 in 4 to 9 days, if the error is [Permanent], or if it cannot be decoded:
// [Queue.Items] lists it, and [Queue.Again] lets it run again. If the body returns [Snooze], the
// item runs later, and the attempt does not count. If it returns [Cancel], the item is cancelled. Both are outcomes and
// no failures. If the body calls [Return], its value is kept with
// the item, and [Wait] returns it in any process; [Queue.WaitAll] waits for many items.
//
// If the lease of a process is lost with an item, that is a loss and no attempt: the item may have
// run beside one that killed the process. After two losses an item runs alone: its process starts
// nothing else meanwhile, in all queues of the store. Then a loss is an attempt, so an item that kills its
// process is dead in the end. A process that is busy stops starting items for up to 10 seconds a
// minute to do that. An item with losses waits 1 second, then longer. An ordinary end of an attempt resets its
// losses.
//
// # What runs next
//
// A process chooses items when slots are free. While bodies are short, it chooses a few more, at
// most one commit or 100 milliseconds earlier than they can start: as many as end during a commit. They are given back
// if no slot is free in time. Where MaxCluster, the Limit of a lane, or a limit or rate of a class
// counts, there are none.
//
// In a lane, the item that is due for longest is next, and an item of a key is due when the one before it has
// ended. But a process may start the next item of a key in the transaction that ends the one before it: at most 3
// times in a row, or 16 times if it knows of no other item that can run. So keys take turns, with up to 4 items each. If
// the wake-up for an item is lost, that item waits for at most 17 items of another key, or one Poll.
//
// Options.Classes are kinds of items that share what is scarce, such as the calls that a service
// allows, or the tokens of a model each minute ([Class].CostRate, [Queue.Cost], [Charge]). The database decides in the claim, by its clock, for all processes. A claim takes a token;
// it does not come back, also if the item is given back or its process dies. An item that waits for
// its class holds up its key, and nothing else. [Queue.SetClass] changes limit and rates for all
// processes at once, and [Queue.ResetClass] goes back to Options. Processes of a version without classes leave
// these items to the others.
//
// Options.KeyRate is a rate for each key. [Queue.Pause] stops the queue, a class or a key in all processes, for a time and
// with a reason. More items of a key at a time are not possible: each key has one head.
//
// If items wait in a lane that no process has, for example after a deploy has changed Lanes, they
// are claimed after all others. Explain, Stats and [SignalLaneUnserved] name the lane.
//
// # Why does it wait?
//
// [Queue.Explain] answers: "behind 2 items of key ada; the first runs on shop-2 for 3s, attempt
// 2 of 25, lease ends in 11s". [Queue.Stats] counts the items of all processes and has the age
// of the oldest waiting item. [Queue.Here] shows the items of this process as operations.
//
// # Looking at items, and changing many
//
// [Queue.List] returns pages of the items of all processes that have a state, lane, class, key, age or
// error, and [Queue.Count] counts them. [Queue.Explain] has the last attempts of an item: when, on
// which node, for how long, and how they ended. [Queue.AgainAll], [Queue.CancelAll],
// [Queue.DiscardAll] and [Queue.MoveAll] change all items that match, in small batches. The Stats of
// [Queue.Inspect] are for metrics.
//
// # Shutting down
//
// When the context of Run ends or [Queue.Stop] is called, the process claims no more items,
// gives back items that have not started, and waits for its bodies. [Queue.Close] also cancels
// the bodies and gives their items back. Other processes run these items, or this one after its
// next start. If the store refuses the end of an item, Run tries again for one Lease after the last body has
// ended, gives the item back, and returns an error with its ID. [Run] runs several queues, and has one place for errors.
//
// # Not offered
//
//   - Exactly once outside of the database: there are tokens only.
//   - Stopping a body that ignores its context.
//   - Accepting items while the database is away: Enqueue returns an error.
//   - Order across keys, several items of a key at once, classes over several queues.
//   - Workflows and replay.
package durable
