// Package sqlite keeps the items of a [durable.Queue] in a SQLite file, for the processes of
// one host.
//
//	w, err := sqlitewriter.Open(ctx, "work.db", sqlitewriter.Options{})
//	...
//	store, err := sqlite.Open(ctx, w, sqlite.Options{})
//	...
//	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders"})
//
// Every decision is one transaction, which begins with BEGIN IMMEDIATE: that is the only lock.
// Which item of a key is first is a unique index. [durable.Store] says what each decision
// promises. When a method returns nil, its transaction is on the disk.
//
// # Exactly once
//
// A body may run twice: its process may die between the effect and the end of the item.
// [Finish] ends the item in the transaction of the effect, so both happen once or not at
// all. [Enqueue] adds an item in the transaction of the caller: what a program has stored
// and the work that follows from it become visible together. These transactions are those of
// [sqlitewriter.Writer.Tx]. In their functions, methods of the queue that write return
// [core.ErrWouldDeadlock]. A goroutine that such a function has started must use the function's
// context: with another one, the call waits for the transaction.
//
// # Schedules
//
// LastTick and MarkTick remember the last run of each schedule of package scheduledtasks.
//
// # The host
//
// Times are those of the host's clock. If it is set forward, leases end early: items run
// again, and the ends of the claims before are refused. If it is set back, leases and delays end later.
//
// A process that is stopped (SIGSTOP, a debugger) in a transaction stops the writes of all
// others. A process that is killed stops nobody.
//
// The file must be on a local disk. SQLite's locks do not work on network file systems.
package sqlite
