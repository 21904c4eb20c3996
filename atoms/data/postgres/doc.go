// Package postgres keeps the values of a [data.Store] in a table of PostgreSQL.
//
//	orders, err := postgres.Open[string](ctx, pool, data.Options[Order]{Name: "orders"})
//	…
//	err = orders.Save(ctx, order.ID, order)
//	for entry, err := range orders.Query(ctx, []string{"customer", "city"}, "Berlin") {
//
// Saves that meet share a transaction: while one runs, the next ones gather. Each caller
// gets the error of its own values: a value that the table refuses fails alone.
//
// # The table
//
// The table has the name of the store and the columns key (bytea, the primary key), value,
// created_at and updated_at. Values are JSONB if the codec is that of package data, and
// BYTEA otherwise. JSONB does not keep the bytes: it orders the fields of an object, keeps
// the last of equal fields and drops blanks. It refuses the character U+0000, numbers
// beyond the range of numeric, and JSON that is nested deeper than max_stack_depth of the
// server allows, which is some thousand levels. [Options] has the choice.
//
// # Durability
//
// Save returns when the server has committed. The server decides what that means: with
// synchronous_commit off, or a table that is unlogged, a crash of the server can lose what
// was saved.
package postgres
