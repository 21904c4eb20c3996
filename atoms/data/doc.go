// Package data keeps values under keys. There is one interface, [Store], and an [Engine] for each
// place that can keep the bytes. atoms/data/file, atoms/data/sqlite and atoms/data/postgres each
// have a function Open:
//
//	orders, err := file.Open[string](ctx, "var", data.Options[Order]{Name: "orders", Sink: sink})
//	...
//	defer orders.Close()
//	err = orders.Save(ctx, "order-123", order) // nil: it is durable
//	order, ok, err := orders.Load(ctx, "order-123")
//
// [Store.Update] changes a value, and loses no change that others make at the same time, also in
// other processes.
//
// If the store has a sink, signals can do the same. [Save], [Load] and [Delete] are kinds of
// signals that ask for something. [Saved], [Loaded], [Deleted] and [Failed] are the answers.
// Requests for one key are done in order. The number of requests that wait is bounded. Until the
// store is closed, each request gets an answer, also if it is dropped. A request that waits is only
// in memory. If a value must survive a crash, call Save, or wait for the answer.
//
// There are no expiry times and no transactions over several keys.
//
// For an engine of your own, see [New] and package datatest, which tests it.
package data
