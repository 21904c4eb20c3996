// Package postgres stores values by key in a table of PostgreSQL. [Open] returns a [Store],
// which is a [data.Store] with queries:
//
//	orders, err := postgres.Open[string](ctx, pool, data.Options[Order]{Name: "orders"})
//	...
//	err = orders.Save(ctx, order.ID, order)
//	for entry, err := range orders.Query(ctx, []string{"customer", "city"}, "Berlin") {
//
// Saves that wait at the same time share a transaction. Each caller gets the error of its own
// values: if the table refuses a value, only the call with that value fails.
//
// # The table
//
// The table has the name of the store. Its columns are key (bytea, the primary key), value,
// created_at and updated_at. With the codec of package data, values are JSONB. With another codec,
// they are BYTEA. [Options] can choose. JSONB keeps the meaning of JSON, but not its bytes: it
// orders the fields of an object, keeps the last of equal fields and removes blanks. It refuses the
// character U+0000, numbers beyond the range of numeric, and JSON with some thousand levels of
// nesting (the server's max_stack_depth is the limit).
//
// # Durability
//
// Save returns when the server has committed. If synchronous_commit is off, or the table is
// unlogged, a crash of the server can still lose saves.
package postgres
