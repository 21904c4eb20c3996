// Package graph runs work that depends on other work: each node once, after
// everything it depends on has succeeded, and as many at once as may.
//
//	tables := graph.New[string]()
//	err := errors.Join(
//		tables.Add("schema", "schema.sql"),
//		tables.Add("users", "users.csv", "schema"),
//		tables.Add("orders", "orders.csv", "schema", "users"),
//	)
//	...
//	report, err := tables.Run(ctx, load, core.Options{MaxConcurrency: 4})
//
// Before anything runs the graph is checked: an unknown dependency or a cycle is
// an error that names the nodes, as in "a -> b -> a" where a depends on b. Then a
// node starts the moment the last of its dependencies has succeeded and there is
// room for it. What it depends on has happened before it: it may read, without a
// lock, what the work of these nodes has written.
//
// When a node fails, others that do not depend on it go on. Those that do, over
// however many steps, are skipped: they do not run, the [Report] says which node
// is to blame, and [SignalSkipped] is raised for each. So the report of a run
// accounts for every node, and the error of Run joins what went wrong.
//
// The nodes run as operations of a [core.Coordinator] that lives as long as the
// run, so all of [core.Options] applies: limits, gates and the sink. The key of
// an operation, and of the signals its work raises, is the name of the node. These
// signals stay on the sink after the run, as long as [core.Options.MaxTracked] and
// [core.Options.MaxAge] say.
package graph
