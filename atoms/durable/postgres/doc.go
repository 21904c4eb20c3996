// Package postgres keeps the items of a durable queue in PostgreSQL, for many processes on
// many machines. [Open] returns a [Store] for [durable.New]:
//
//	store, err := postgres.Open(ctx, pool, postgres.Options{})
//	…
//	orders, err := durable.New(store, Order.CustomerKey, ship, durable.Options{Name: "orders"})
//
// Each method is one transaction of the server, sent in one round trip. A unique index makes
// sure that each key has one first item. Limits are counted under a lock. All times are those
// of the server. [durable.Store] has the promises of each method.
//
// # Exactly once
//
// A body may run twice: its process may die between the effect and the end of the item.
// [Finish] ends the item in the transaction of the effect, so both happen once or not at all.
// [Enqueue] adds an item in the transaction of the caller, so the caller's changes and the
// item become visible together.
//
// # Flows
//
// [Step] runs a step of a flow and commits its effect and its record together. [Signal] sends a signal to the flows of a key in
// the transaction of the caller. See package flow.
//
// # Schedules
//
// A [Store] is also a store of package scheduledtasks: it remembers the last tick of each
// schedule.
//
// # The server
//
// Commits are durable if synchronous_commit and fsync are on. The package needs PostgreSQL 14
// or later; it is tested with 15. PgBouncer may be between the program and the server. Then
// set Options.PollOnly, and in the configuration of the pool DefaultQueryExecMode to
// pgx.QueryExecModeExec: prepared statements and notifications need one fixed connection.
package postgres
