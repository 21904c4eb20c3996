// Package postgres keeps the items of a [durable.Queue] in PostgreSQL, for many processes on
// many machines.
//
//	store, err := postgres.Open(ctx, pool, postgres.Options{})
//	…
//	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders"})
//
// Every decision is one transaction of the server, sent in one round trip: which item of a
// key is first is a unique index, limits are counted under a lock, and all times are those
// of the server. [durable.Store] says what each decision promises.
//
// # Exactly once
//
// A body may run twice: its process may die between the effect and the end of the item.
// [Finish] ends the item in the transaction of the effect, so both happen once or not at
// all. [Enqueue] adds an item in the transaction of the caller: what a program has stored
// and the work that follows from it become visible together.
//
// # Schedules
//
// LastTick and MarkTick remember the last run of each schedule of package scheduledtasks.
//
// # The server
//
// Commits are durable if synchronous_commit and fsync are on. The package needs PostgreSQL
// 14 or later; it is tested with 15. All locks end with their transaction, so PgBouncer may
// be between the program and the server: set Options.PollOnly, and in the configuration of the
// pool DefaultQueryExecMode to pgx.QueryExecModeExec, because prepared statements and
// notifications need a connection of their own.
package postgres
