// Package data stores values by key, in files, in SQLite or in PostgreSQL. There is one interface,
// [Store], and an [Engine] for each place that can store the bytes. atoms/data/file,
// atoms/data/sqlite and atoms/data/postgres each have a function Open:
//
//	orders, err := file.Open[string](ctx, "var", data.Options[Order]{Name: "orders", Sink: sink})
//	...
//	defer orders.Close()
//	err = orders.Save(ctx, "order-123", order) // nil: it is durable
//	order, ok, err := orders.Load(ctx, "order-123")
//
// [Store.Update] changes a value. It loses no change of other callers and other processes.
//
// Signals can do the same. [Save], [Load] and [Delete] are requests. [Saved], [Loaded], [Deleted]
// and [Failed] are answers. Requests for one key run in order. The number of requests that wait is
// bounded. Until the store is closed, each request gets an answer, even if it is dropped. A request
// waits in memory only. If a value must survive a crash, call Save, or wait for the answer.
//
// There are no expiry times and no transactions over several keys.
//
// To write your own engine, see [New], and test it with package datatest.
package data
