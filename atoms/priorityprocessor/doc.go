// Package priorityprocessor gives each item to the first healthy one of several processors: a
// primary and its backups. If a processor fails an item, the item goes to the next one at
// once. A processor that keeps failing is unhealthy. Then items try it last, until it works
// again.
//
//	orders, err := priorityprocessor.New([]priorityprocessor.Processor[Order]{
//		{Name: "primary", Priority: 1, Do: chargePrimary, Probe: pingPrimary},
//		{Name: "backup", Priority: 2, Do: chargeBackup},
//	}, priorityprocessor.Options{})
//	if err != nil {
//		return err
//	}
//	defer orders.Close()
//	err = orders.Do(ctx, order)
//
// With [NewResult], processors and Do return a result.
//
// [Failover.Do] runs on the goroutine of its caller. It has the form of [core.Work], so it can
// be the work of a coordinator, and you can wrap it. It starts with the highest priority that
// has a healthy processor; 1 is the highest. Processors of the same priority take turns.
// Unhealthy processors are tried last, or not at all ([Options.HealthyOnly]). If all
// processors fail an item, Do returns an [*Error], which has the error of each.
//
// # Health
//
// After three failures in a row ([Options.Threshold]), a processor is unhealthy. A probe finds
// out whether it works again: the first one after 5 seconds. Each failed probe doubles the
// time until the next one, up to a minute. If a probe succeeds, the processor is healthy again.
// There are two kinds of probes:
//
//   - If the processor has a Probe function, this function is called on its own goroutine,
//     one call at a time for each processor.
//   - Otherwise an item is the probe: when a probe is due, the next item that reaches the
//     priority of the processor. If the processor fails it, the item goes to the next one.
//
// Some errors are not failures of the processor. If the context of the item ends, Do stops,
// and the attempt does not count. If [Options.FailoverIf] returns false for an error, the item
// is at fault: Do returns the error, and the attempt counts as a success.
//
// If a processor hangs until the context of the item ends, it stays healthy. So set
// [Options.Timeout], the limit of each attempt.
//
// # Signals
//
// A Failover raises signals about its decisions, and other signals control it. So another part
// of the program needs only the sink, for example to move work to another region. While the
// signal "route.priority.2" is on the sink, items start with priority 2. The signals
// "processor.mark.unhealthy" and "processor.mark.healthy" set the health of the processor that
// is their key. See [SignalStarted] and [CommandRoute].
package priorityprocessor
