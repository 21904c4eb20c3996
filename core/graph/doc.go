// Package graph runs work that depends on other work: each node once, after all its
// dependencies have succeeded. As many nodes run at once as the options allow.
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
// The graph is checked before anything runs. An unknown dependency or a cycle is an error
// that names the nodes, as in "a -> b -> a", where a depends on b. In the run, a node
// starts as soon as all its dependencies have succeeded and a slot is free. Its work may
// read without a lock what the work of its dependencies has written.
//
// When a node fails, nodes that do not depend on it still run. Nodes that depend on it,
// directly or not, are skipped: they do not run, the [Report] names the failed node, and
// [Skips] is raised for each. So the report of a run has a result for every node,
// and the error of Run joins all errors.
//
// The nodes run as operations of a [core.Coordinator] that lives as long as the run, so
// all of [core.Options] applies: limits, gates and the sink. The name of the node is the
// key of its operation, and of the signals that its work raises. These signals stay on
// the sink after the run, as long as [core.Options.MaxTracked] and [core.Options.MaxAge]
// say.
package graph
