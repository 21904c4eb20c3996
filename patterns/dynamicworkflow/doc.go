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
// The work that New gets does an item by one of several processors, each with a priority: 1
// is the first choice. Workflow and work share a sink and know each other by signals only.
// While an item runs, its operation holds "route.priority.2" with the entity as key: the work
// starts with that priority, and goes on to others by itself if it fails. The work raises:
//
//   - "failover.requested:pri1->pri2", by the item's operation, when an item goes on;
//   - "processor.unhealthy:pri1" and "processor.healthy:pri1", when the health of the
//     processor changes. Give each processor a priority of its own: the last such signal
//     counts. The priority may be the key instead: "processor.unhealthy" with key "pri1";
//   - "processing.failed:pri1", when an attempt fails.
//
// The Failover of atoms/priorityprocessor does all of this.
//
// # Health
//
// No item is routed to a priority that is unhealthy, unless all are: then no route is held.
// 5 s later the priority is probed, by [Options.Probe]; and again after 10, 20, 40, 60 and
// 60 s, until a probe succeeds. That raises "processor.mark.healthy:pri1", which the work
// follows. Without a Probe the priority is on trial: items are routed to it again, until one
// fails there, and then the wait is doubled as well.
//
// # Concurrency
//
// [Options.Interval] after the first result, the rule looks at the results since then: if
// more than 10 % of the attempts failed, two items fewer may run at once; if less than 2 %
// failed and more items succeeded than 0.8 x the limit, two more. A failed attempt is one
// that ended in a failover, or was the last of a failed item. The next interval begins with
// the next result, so an idle workflow does nothing. "system.load.high" and
// "system.load.low" are a step down and up at once.
package dynamicworkflow
