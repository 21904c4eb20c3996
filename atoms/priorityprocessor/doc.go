// Package priorityprocessor gives each item to the best of several processors that works:
// a primary and its backups. When a processor fails an item, the item goes to the next one
// at once. A processor that keeps failing is unhealthy and gets no items until it works
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
// With [NewResult] the processors, and Do, return a result.
//
// [Failover.Do] runs on the caller's goroutine and has the form of [core.Work]. So it can
// be the work of a coordinator, which bounds and tracks it, and middleware can wrap it. It
// starts with the highest healthy priority; 1 is the highest. Processors of the same
// priority take turns. An item fails when every processor has failed it, with an [*Error]
// that has the error of each. Unhealthy processors are tried last, unless
// [Options.HealthyOnly] is set.
//
// # Health
//
// After three failures in a row ([Options.Threshold]) a processor is unhealthy, and gets no
// items. It is probed after 5 seconds. Each probe that fails doubles the time until the
// next one, up to a minute. When a probe succeeds, the processor is healthy and gets its
// items back. What a probe is depends on the processor:
//
//   - With a Probe function, that function is called on a goroutine of its own, one call at
//     a time for each processor.
//   - Without one, the next item that comes when a probe is due is given to the processor
//     first. If that fails, the item goes on as usual.
//
// Some errors are not failures of the processor. When the context of the item ends, Do
// stops, and the attempt does not count. When [Options.FailoverIf] says that an error is the
// item's own fault, Do returns it, and the processor counts as working. So a processor that
// hangs until the item's context ends stays healthy: set [Options.Timeout], which bounds
// each attempt.
//
// # Signals
//
// A Failover raises signals about what it decides, and other signals control it. So other
// parts of the program can drive it with the sink alone: a router that moves work to another
// region, or a prober that knows more than a ping. While there is a fact "route.priority.2"
// on the sink, items start with priority 2; if the fact has a key, only items whose operation
// has that key. "processor.mark.unhealthy" and "processor.mark.healthy" change the health of
// the processor that is their key. See the constants.
package priorityprocessor
