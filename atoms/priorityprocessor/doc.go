// Package priorityprocessor does work by the best of several processors that is in
// order: a primary and its backups. When one fails an item, the item itself goes to
// the next at once, and who keeps failing is left out until it has recovered.
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
// [Failover.Do] runs on the caller's goroutine and has the form of [core.Work], so
// it can be the work of a coordinator, which bounds and tracks it, and be wrapped by
// middleware. It starts with the highest healthy priority; 1 is the highest.
// Processors of one priority take turns. An item fails only when every processor has
// failed it, with an [*Error] that says what each of them said; those that are
// unhealthy are tried too, after all others, unless [Options.HealthyOnly] says no.
//
// # Health
//
// After three failures in a row ([Options.Threshold]) a processor is unhealthy, and
// items pass it by. After 5 seconds it is probed, after a probe that fails again in
// twice the time, up to a minute. When it passes it is healthy, and gets its items
// back. What a probe is depends on the processor:
//
//   - With a Probe function, that is called, on a goroutine of its own, one at a time
//     for each processor.
//   - Without one, the next item that comes when a probe is due is given to it, first.
//     If that fails, the item goes on as usual.
//
// Some errors are no failures. When the context of the item ends, nobody is to
// blame: Do stops. When [Options.FailoverIf] says that an error is the item's own
// fault, Do returns it; whoever found that out is in order. So a processor that
// hangs until the item's context ends is never blamed; [Options.Timeout] bounds each
// attempt to do that.
//
// # From outside
//
// What a Failover decides it tells by signals, and it heeds some, so that it can be
// driven by others which know nothing of it but the sink: a router that moves work
// out of a region, a prober that knows more than a ping says. While there is a fact
// "route.priority.2", best held, items start with priority 2; with a key only items
// whose operation has that key. "processor.mark.unhealthy" and
// "processor.mark.healthy" change the health of the processor that is their key. See
// the constants.
package priorityprocessor
