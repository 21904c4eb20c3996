// Package core runs concurrent work that is limited, ordered and visible, and says why an
// item waits. For readers who begin, the [guide] has ten short pages.
//
// A [Coordinator] calls one function, the body, for each item. This program resizes images,
// four at once, and prints the failures:
//
//	func main() {
//		ctx := context.Background()
//		images := core.Must(core.NewCoordinator(resize, core.Options{MaxConcurrency: 4}))
//		defer images.Close()
//		for _, file := range os.Args[1:] {
//			core.Must(images.Enqueue(ctx, file)) // waits while the queue is full
//		}
//		fmt.Println(images.Drain(ctx)) // waits until all are done
//		for op := range images.Operations(core.OperationQuery{Status: core.StatusFailed}) {
//			fmt.Println(op.Item, op.Err)
//		}
//	}
//
//	func resize(ctx context.Context, file string) error { ... }
//
// # Run
//
// Each accepted item is an operation. A running operation has a slot; the limit is the number
// of slots. The window is the list of the operations that a coordinator knows. A finished one
// stays in it for a while, and is then evicted. Its [Echo], a short record, remains longer.
//
//	enqueued -> pending -> running -> succeeded | failed | cancelled -> evicted -> echo -> gone
//	               |         | ^
//	               |         v |
//	               |       suspended
//	               |
//	               +-> cancelled | refused | dropped ------------------> evicted -> ...
//
// The body finds its operation with [OperationFrom]. [ForEach] and [Map] run a sequence of
// items and return when all are done. A [ResultCoordinator] runs operations that have results.
//
// # Wait
//
// The end of the context of Enqueue ends only the wait for room; it does not cancel the
// operation. Do waits for the operation, too; there, the end of the context cancels it. Submit
// returns a [Future], which has the result even after the eviction. A [Group] waits for some
// items of a coordinator.
//
// A body may enqueue into its own coordinator; [Control.WaitIdle] waits until no work is left.
// If a body waits for an operation of its coordinator, it gives up its slot meanwhile; for
// other waits, there is [Operation.Suspend]. [Lifecycle] has the methods that end work, with
// the same meaning in all modules. [Shutdown] ends the parts of a program in order.
//
// # Limit
//
// One scheduler knows all limits, so they combine. An item that waits takes no slot.
//
//   - Keys ([NewKeyedCoordinator]): items of one key run in order, one at a time. Keys may
//     have rates ([Options.KeyRate]).
//   - Lanes ([Options.Lanes]) are priorities: which items start first.
//   - Classes ([Options.Classes]) are kinds of items that share what is scarce, in all lanes: a
//     limit, calls and cost each second, a service that may be down.
//   - Gates are patterns: while a signal that matches is present, items wait ([Options.DeferOn])
//     or are refused ([Options.CancelOn]).
//
// # Look
//
// [Control.Explain] says why an operation waits, and which operation it waits for.
// [Control.Operations] lists the window; many successes do not push failures out of it.
// [Control.Stats] has each accepted item in exactly one counter. A body stores values that
// others read: [Operation.Set].
//
// # Signals
//
// A signal is a fact: a name, a key that says what it is about, the operation that raised
// it, and a time. Operations raise signals; other code raises them on a sink, which parts of
// a program share. A signal starts nothing. Code looks for it (Has and Sense of the sink),
// counts it (Monitor), or is called (Subscribe, [Dispatcher]). Sinks and signals are in package
// [github.com/ephemeralgo/ephemeral/core/signals], which needs no coordinator.
//
// A raised signal leaves the sink by itself, by default after 5 minutes or 1000 newer ones. A
// condition that must last is held: Hold of the sink. A signal is present while Has finds it. A
// [table] of the guide says how long that is, and how long a signal refuses or defers items.
//
// # Guarantees
//
//   - Operations start in the order in which their items were accepted. With lanes, this holds
//     within each lane; with keys, for the items of one key in one lane. Items of a class that
//     is full or has no tokens keep their places, and others pass them. The turn of an item
//     that waits for room, among other keys and classes, counts from the time at which it came.
//   - The queue, the window, the echoes, the sink and the signals of one operation are bounded,
//     and what they drop is counted. Not bounded are held signals, items that operations enqueue
//     into their own coordinator, and operations that wait for others of their coordinator.
//   - [Options.OnDone] is called exactly once for each operation, when it ends, and
//     [Control.OnFinalized] when it leaves the window. Running operations are never evicted.
//   - No function of yours is called under a lock. A body or handler may call any method. Close
//     does not wait there; calls that would wait for their own operation return
//     [ErrWouldDeadlock]. Circles over several coordinators are not found there; inspect.Waits
//     shows them.
//   - A panic in a body makes its operation failed ([PanicError]). A panic in a handler is counted.
//     A body may end its goroutine with [runtime.Goexit], a handler or callback must not.
//   - An idle coordinator or sink owns no goroutine. All takes its time from package time, so
//     it runs under the fake clock of testing/synctest; package coretest has helpers.
//
// [guide]: https://github.com/ephemeralgo/ephemeral/tree/main/docs/guide
// [table]: https://github.com/ephemeralgo/ephemeral/blob/main/docs/guide/03-signals-and-gates.md#how-long-a-signal-blocks
package core
