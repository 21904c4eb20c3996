// Package core runs concurrent work that is bounded, tracked, observable and
// self-cleaning. Parts of a program coordinate through signals. A signal is a small fact
// on a sink, which keeps a bounded number of them for a limited time. Every part decides
// when it looks at the sink.
//
// # Operations
//
// A [Coordinator] has one function, the body, and runs it for each item. Each item that
// it accepts is an operation. A limit bounds how many run at once. A running operation
// has a slot:
//
//	uploads, err := core.NewCoordinator(save, core.Options{MaxConcurrency: 8})
//	...
//	id, err := uploads.Enqueue(ctx, file)
//
// Enqueue returns at once while the queue has room, and waits while it is full. So slow
// work slows down a fast producer. The end of ctx ends this wait; it does not cancel the
// operation. With the id, anybody can look an operation up, wait for it, pin it or
// cancel it. The window is the list of the operations that a coordinator knows. A
// finished operation stays in it for a while, and is then evicted: removed. With a
// [Future] from Submit, code can wait for the operation even after its eviction. Every
// accepted item is in exactly one counter of [Stats].
//
//	enqueued -> pending -> running -> succeeded | failed | cancelled -> evicted -> echo -> gone
//	               |         | ^
//	               |         v |
//	               |       suspended
//	               |
//	               +-> cancelled | refused | dropped ------------------> evicted -> ...
//
// For a while after its eviction, the [Echo] of an operation remains: a short record.
//
// [Options.OnDone] is called for each operation that ends. The window keeps failed
// operations apart from the others, so that many successes do not push them out. A
// [Group] waits for a set of items on a coordinator that others use as well.
//
// A body gets its operation from the context: [OperationFrom]. Through the operation, it
// stores values for others to read and raises signals. [ForEach] and [Map] run a sequence
// of items in the same way and return when all are done. A [ResultCoordinator] runs
// operations that have results.
//
// # Keys, lanes and classes
//
// A keyed coordinator ([NewKeyedCoordinator]) runs the items of one key in order, one at
// a time, and different keys side by side. An item whose key is "" has no key. Lanes
// ([Options.Lanes]) are priorities: they say which items start first, how many of a lane
// run at once, and which signals defer or refuse them. Classes ([Options.Classes]) are
// kinds of items that share what is scarce, in all lanes: how many run at once, how many start
// and what they cost each second, and a service that may be down. Keys have rates, too
// ([Options.KeyRate]). An item that waits for tokens waits in its lane, without a slot. One scheduler knows limits, keys,
// lanes, classes and signals, so all of them combine:
//
//	lanes, err := core.ParseLanes("hot:4, normal, slow:2")
//	...
//	orders, err := core.NewKeyedCoordinator(Order.Customer, ship, core.Options{Lanes: lanes})
//	...
//	id, err := orders.Lane("hot").Enqueue(ctx, order)
//
// The scheduler decides what runs next when a slot is free. So a busy key delays no
// other key, and an urgent item that comes late is the next to start.
//
// [Control.Explain] says why an operation waits: for the limit, for its key, lane or
// class, for tokens, or because of a signal. If another operation holds the key or has raised the
// signal, Explain names it. A body that waits for something else can report it:
// [Operation.WaitsFor].
//
// # Waits and recursion
//
// An operation that waits for long can give up its slot meanwhile: [Operation.Suspend].
// An operation that waits for another operation of the same coordinator gives up its slot
// automatically. An operation may always enqueue into its own coordinator, so work can
// create more work. [Control.WaitIdle] waits until no work is left.
//
// # Signals
//
// A [Signal] is a fact: a name, a key that says what it is about, the operation that
// raised it, and a time. Operations raise signals. Other code can raise them directly on
// a [Sink], which parts of a program share. Raising a signal starts nothing by itself.
// Other code decides when it looks:
//
//	if sink.Has("gateway.error.*") { ... }
//	for s := range sink.Sense(core.Query{Pattern: "order.*", Within: time.Minute}) { ... }
//
// A [Monitor] counts signals over a sliding span. Code that wants to be called subscribes:
// [Sink.Subscribe]. [Sink.Forward] connects sinks.
//
// A raised signal leaves the sink by itself. Code can retract it (take it back) before
// that: an operation retracts the signals that it has raised, and [Sink.Retract] retracts
// all others. For a condition that must last, hold a signal: [Sink.Hold],
// [Operation.Hold]. A held signal (also: held fact) stays until it is released.
//
// A signal is present on a sink while [Sink.Has] finds it, and in a coordinator while
// [Control.Has] finds it. A coordinator refuses items ([Options.CancelOn]) or defers them
// ([Options.DeferOn]) while a signal is present. The value of such an option is a pattern,
// called a gate. A gate is closed, and blocks work, while a signal that matches the pattern
// is present on the sink or in the coordinator itself. (For a circuit breaker, closed means
// the opposite: calls pass.) This table says what ends the presence of a signal on the sink
// (Sink.Has), and what ends the time in which it refuses items (CancelOn) or defers an item
// (DeferOn). A cell names events, which are explained below; the first one counts.
//
//	signal                       Sink.Has           CancelOn      DeferOn
//	raised on the sink           age, room          age           age, MaxDefer
//	raised by an operation of
//	  the coordinator itself     age, room, window  window        window, MaxDefer
//	  another coordinator        age, room, window  age, window   age, window, MaxDefer
//	held                         release            release       release
//
// These are the events:
//
//   - age: SinkOptions.MaxAge has passed since the signal, by default 5 minutes.
//   - room: SinkOptions.Capacity newer signals have come, by default 1000. Signals
//     that match a gate are not pushed out: for each gate, the sink keeps up to 256 in addition.
//   - window: The operation leaves the window of its coordinator: by default at most 5
//     minutes after its end ([Options.MaxAge]). It stays while it runs or is pinned.
//   - MaxDefer: The item has been deferred for [Options.MaxDefer], by default 5 seconds.
//     Then it runs, although the signal is present.
//   - release: The signal is released, its lease ends, or the operation that holds it ends.
//
// If a raised signal is retracted, all of this ends at once. DeferOn defers no item while a
// newer signal that matches ResumeOn is present.
//
// # Guarantees
//
//   - Order. Operations start in the order in which their items were accepted. With lanes,
//     this holds within each lane. With keys, it holds for the items of one key in one
//     lane. While a class is full, items of other classes pass its items, which keep their
//     places. The turn of an item that waits for room, among other keys and classes,
//     counts from the time at which it came.
//   - Bounds. No operation starts while the limit is reached. The queue, the window, the
//     echoes, the sink and the signals of one operation are bounded. Whatever they drop
//     is counted. There are three exceptions: held signals, items that an operation
//     enqueues into its own coordinator ([Stats].Overflow), and operations that wait for
//     others of their coordinator, because these give up their slots.
//   - Running operations are never evicted. [Options.OnDone] is called exactly once for each
//     operation, when it ends. [Control.OnFinalized] is called exactly once for each
//     operation, when it leaves the window or the coordinator is closed.
//   - No function of yours is called while a lock is held. Bodies, handlers and callbacks
//     may call any method, even Close on their own coordinator. Close does not wait there.
//     Other calls that would wait for their own operation return [ErrWouldDeadlock]. Circles
//     of waits over several coordinators are not refused; Explain shows them, and package
//     inspect finds them.
//   - A panic in a body makes its operation failed, with a [PanicError]. A panic in a
//     handler or callback is counted. Nothing else recovers panics.
//   - An idle coordinator or sink owns no goroutine. It may own a timer for things that
//     will expire.
//
// # Handlers
//
// A handler of [Sink.Subscribe] runs on the goroutine that raises the signal, before Raise
// returns, in the order of subscription. While a handler blocks, the raiser waits: this is the
// backpressure of a pipeline. A handler may raise a signal that calls the same handler
// again, directly or through other handlers. Such a loop ends when calls of handlers are
// nested 64 deep. If the handlers name causes, it ends when the chain of causes (signals
// raised because of signals) has a name twice or is too long: see [Propagation].
//
// A [Dispatcher] or a [Processor] calls its handlers in the background, so that the raiser
// does not wait. There, only causes end a loop: see [Handler].
//
// # Shutting down
//
// Complete ends the intake: no more items are accepted. Flush waits for the accepted
// ones. Drain does both. Stop does both and cancels pending items. Close also cancels
// running ones, and empties the window. See [Lifecycle]. At the end of a program, call Drain
// with a deadline, list what failed, and then call Close:
//
//	err := orders.Drain(ctx)
//	for op := range orders.Operations(core.OperationQuery{Status: core.StatusFailed}) { ... }
//	orders.Close()
//
// In a pipeline, drain the first stage first. [Shutdown] does that. When its context ends,
// its error says what still runs, and why.
//
// # Cost
//
// Raising a signal costs about as much as reading the clock, and allocates nothing,
// except in an operation. The cost does not depend on the size of
// the sink, nor on subscribers to other names. [Sink.Has] usually takes no lock if pattern
// is the exact name of a signal that is present. Other calls of Has, Count and
// [Monitor.Count] take one. A signal can be asked for by name without being entered
// anywhere when it is raised: names are entered when somebody asks, and names that are asked
// for again are counted from then on. An operation costs one allocation, and one more for
// its second signal, once the memory of earlier operations can be used again. A key costs
// nothing while it has no operations.
//
// # Testing
//
// Everything takes its time from package time, so it runs under the fake clock of
// testing/synctest. Package coretest has the checks that every type with a lifecycle must
// pass, and helpers to expect signals.
package core
