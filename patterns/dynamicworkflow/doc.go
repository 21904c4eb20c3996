// Package dynamicworkflow runs items of many entities, each in order, and routes them to
// healthy processors. It probes processors that fail, and changes the number of items that run
// at once by their results. Entities do not wait for each other. Each decision is a signal.
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
// No item is routed to an unhealthy priority. If all are unhealthy, no route is held, and the
// work chooses. [Options.Probe] probes an unhealthy priority after 5 s, and then after 10, 20,
// 40, 60, 60 s and so on, until a probe succeeds. Then the workflow raises
// "processor.mark.healthy:pri1", and a Failover uses the processor again. Without a Probe, the
// priority counts as healthy again after 5 s.
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
