// Package dynamicworkflow runs items of many entities, each in order, and routes them to
// healthy processors. It changes the number of items that run at once by their results. Entities
// do not wait for each other. Each decision is a signal.
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
// The work is a function that passes an item to one of several processors. Each processor has
// a priority: 1 is the first choice. The method Do of a Failover of atoms/priorityprocessor is
// such a function. Workflow and work exchange signals on their sink. So give each pair its own
// sink.
//
// While an item runs, its operation holds a signal such as "route.priority.2", with the entity
// as key. The work starts with this priority. If that priority fails, the work itself goes on
// to another one. The work raises:
//
//   - "failover.requested:pri1->pri2", by the item's operation, when an item goes on;
//   - "processor.unhealthy:pri1" and "processor.healthy:pri1", when the health of the
//     processor with that priority changes.
//
// If the work raises none of these signals, all priorities count as healthy. Give each
// processor its own priority: processors with the same priority have one health.
//
// # Health
//
// When the work raises "processor.unhealthy:pri1", items are routed to other priorities. Every
// 5 s one item is still routed to priority 1, to see whether it works again. When the work
// raises "processor.healthy:pri1", all are. If no priority is healthy, no route is held, and
// the work chooses. A Failover probes an unhealthy processor with its function Probe or, if it
// has none, with such an item.
//
// # Concurrency
//
// An interval begins with a result, and lasts for [Options.Interval]. At its end, a rule looks
// at its results. If more than 10 % of the attempts failed, the limit is lowered by Step. If
// less than 2 % failed, and more items succeeded than 0.8 x the limit, the limit is raised by
// Step. An attempt failed if it ended in a failover, or if it was the last attempt of a failed
// item. The next interval begins with the next result, so an idle workflow does nothing. The
// signal "system.load.high" lowers the limit by Step immediately, "system.load.low" raises it.
package dynamicworkflow
