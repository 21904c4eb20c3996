// Package data keeps values under keys: one interface, [Store], and an [Engine] for each
// place where the bytes can be. There are atoms/data/file, atoms/data/sqlite and
// atoms/data/postgres, each with a function Open:
//
//	orders, err := file.Open[string](ctx, "var", data.Options[Order]{Name: "orders", Sink: sink})
//	...
//	defer orders.Close()
//	err = orders.Save(ctx, "order-123", order) // nil: it is durable
//	order, ok, err := orders.Load(ctx, "order-123")
//
// [Store.Update] changes a value without losing changes of others, also of other processes.
//
// With a sink, signals can do the same: [Save], [Load] and [Delete] are kinds of signals
// that ask for something, and [Saved], [Loaded], [Deleted] and [Failed] those of the answers.
// Requests for a key are done in order. How many may wait is bounded, and each request gets
// an answer until the store is closed, also if it is dropped. A request that waits is in
// memory only: what must survive a crash waits for its answer, or calls Save.
//
// There are no expiry times and no transactions over several keys.
//
// For an engine of your own, see [New] and package datatest, which checks it.
package data
