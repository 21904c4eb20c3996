// Package sqlite keeps the items of a durable queue in a SQLite file, for the processes of
// one host. [Open] returns a [Store] for [durable.New]:
//
//	w, err := sqlitewriter.Open(ctx, "work.db", sqlitewriter.Options{})
//	...
//	store, err := sqlite.Open(ctx, w, sqlite.Options{})
//	...
//	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders"})
//
// Each method that changes items is one transaction. It begins with BEGIN IMMEDIATE: that is
// the only lock. A unique index makes sure that each key has one first item. [durable.Store]
// has the promises of each method. When a method returns nil, its transaction is on the disk.
//
// # Exactly once
//
// A body may run twice: its process may die between the effect and the end of the item.
// [Finish] ends the item in the transaction of the effect, so both happen once or not at all.
// [Enqueue] adds an item in the transaction of the caller, so the caller's changes and the
// item become visible together. [Step] runs a step of a flow, with its record in the
// transaction of its effect; [Signal] sends a signal to a flow in the transaction of the
// caller. Use [sqlitewriter.Writer.Tx] for these transactions. In its
// function, methods of the queue that write return [core.ErrWouldDeadlock]. If the function
// starts a goroutine that calls such a method, it must use the function's context: with
// another context, the call waits for the transaction.
//
// # Schedules
//
// A [Store] is also a store of package scheduledtasks: it remembers the last tick of each
// schedule.
//
// # The host
//
// Times are those of the host's clock. If it is set forward, leases end early: items run
// again, and the late ends of their earlier claims are refused. If it is set back, leases and
// delays end later, and items that are ready or become so wait for that time, too.
//
// A process that is stopped (SIGSTOP, a debugger) in a transaction stops the writes of all
// others. A process that is killed stops nobody.
//
// The file must be on a local disk. SQLite's locks do not work on network file systems.
package sqlite
