// Package dynamicworkflow runs items of many entities, each entity in order and isolated from
// the others, and adapts to what happens: items are routed by the health of processors,
// processors that fail are probed, and the number of items that run at once follows the
// results. Each decision is a signal.
//
//	failover, err := priorityprocessor.New(processors, priorityprocessor.Options{Sink: sink})
//	...
//	orders, err := dynamicworkflow.New(Order.Customer, failover.Do, dynamicworkflow.Options{
//		Route: dynamicworkflow.Weighted(90, 10),
//	}, core.Options{Name: "orders", Sink: sink})
//	...
//	id, err := orders.Enqueue(ctx, order)
//
// # The work
//
// The work that New gets does an item by one of several processors, each with a priority: 1
// is the first choice. The Failover of atoms/priorityprocessor is such a work. Workflow and
// work know each other by signals on their sink only, so give each pair a sink of its own.
//
// While an item runs, its operation holds "route.priority.2", with the entity as key: the
// work starts with that priority, and goes on to others by itself when it fails. The work
// raises:
//
//   - "failover.requested:pri1->pri2", by the item's operation, when an item goes on;
//   - "processor.unhealthy:pri1" and "processor.healthy:pri1", when the health of the
//     processor of that priority changes.
//
// A work that raises nothing is routed as well: then all priorities count as healthy. Give
// each processor a priority of its own: of several, the last signal counts for all.
//
// # Health
//
// No item is routed to a priority that is unhealthy. If all are, no route is held, and the
// work chooses. An unhealthy priority is probed by [Options.Probe] after 5 s, and again after
// 10, 20, 40, 60 and 60 s, until a probe succeeds. Then "processor.mark.healthy:pri1" is
// raised, which a Failover follows. Without a Probe, items are routed to the priority again
// after 5 s, and the Failover finds out by itself whether it works.
//
// # Concurrency
//
// [Options.Interval] after the first result, the rule looks at the results since then. If
// more than 10 % of the attempts failed, it takes Step from the limit; if less than 2 % failed
// and more items succeeded than 0.8 x the limit, it adds Step. An attempt failed if it ended
// in a failover, or was the last of a failed item. The next interval begins with the next
// result, so an idle workflow does nothing. "system.load.high" and "system.load.low" are a
// step down and up at once.
package dynamicworkflow
