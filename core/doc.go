// Package core runs concurrent work that is bounded, tracked, observable and
// self-cleaning, and lets pieces of a program coordinate through signals: small
// facts in a bounded, time-limited window that are sensed rather than delivered.
//
// # Operations
//
// A [Coordinator] is given a function and then items. For each item it runs the
// function as an operation, so many at once and no more:
//
//	uploads, err := core.NewCoordinator(save, core.Options{MaxConcurrency: 8})
//	...
//	id, err := uploads.Enqueue(ctx, file)
//
// Enqueue returns at once while there is room in the queue, and waits when there
// is none, so a fast producer is slowed down by slow work. The operation can be
// looked up by its id, waited for, pinned and cancelled; when it has finished it
// stays visible in the window for a while and then leaves by itself. Nothing has
// to be collected, and nothing is lost track of: every item that was accepted is
// in exactly one of the counters of [Stats].
//
//	enqueued -> pending -> running -> succeeded | failed | cancelled -> evicted -> echo -> gone
//	               |
//	               +-> cancelled | refused | dropped ------------------> evicted -> ...
//
// Inside the function, [OperationFrom] finds the operation in the context; through
// it the function leaves values for others to read and raises signals. For a
// sequence of items there are [ForEach] and [Map], which do the same and return
// when all is done. Where items have results there is a [ResultCoordinator].
//
// # Keys, lanes, and why
//
// A keyed coordinator ([NewKeyedCoordinator]) runs items of one key in order, one
// at a time, and different keys side by side. Lanes ([Options.Lanes]) say which
// items go first, how many of a kind may run at once, and which signals hold up
// that kind. They combine with each other, with limits, signals and results,
// because one scheduler knows them all:
//
//	lanes, err := core.ParseLanes("hot:4, normal, slow:2")
//	...
//	orders, err := core.NewKeyedCoordinator(Order.Customer, ship, core.Options{Lanes: lanes})
//	...
//	id, err := orders.Lane("hot").Enqueue(ctx, order)
//
// What runs next is decided when a slot is free, so a busy key delays no other and
// a late urgent item is next. [Coordinator.Explain] says of any operation why it
// waits, from the limit to the key and who has it, to the signal and who raised it.
// A body that waits for something of its own says so ([Operation.WaitsFor]).
//
// # Signals
//
// A [Signal] is a fact: a name, what it is about, who said so and when. Operations
// raise signals, and so may anybody on a [Sink], the window that a program's parts
// share. Raising one runs nothing and obliges nobody. Others sense it, when they
// choose to:
//
//	if sink.Has("gateway.error.*") { ... }
//	for s := range sink.Sense(core.Query{Pattern: "order.*", Within: time.Minute}) { ... }
//
// or decide by it all the time: a [Monitor] counts it over a sliding span, and a
// coordinator refuses or defers work while it stands ([Options.CancelOn],
// [Options.DeferOn]). Those who want to be called subscribe, knowingly. Sinks of
// different parts of a program are joined by [Sink.Forward].
//
// A fact ages, and newer facts push it out of the window: right for history. A
// condition that others depend on is held instead ([Sink.Hold], [Operation.Hold])
// and stands until it is released. Only who raised a signal can take it back.
//
// # Guarantees
//
//   - Order. Operations start in the order in which items were accepted; with keys
//     and lanes, within each.
//   - Bounds. Never more than the limit run; the queue, the window, its echoes,
//     the sink, the signals of one operation and the facts a gate remembers are
//     all bounded, and what is dropped is counted.
//   - Running operations are never evicted. Finalizing ([Coordinator.OnFinalized])
//     happens exactly once for each operation, on Close too.
//   - No function of yours is called while a lock is held. Bodies, handlers and
//     callbacks may call any method of anything, also to close what they run in.
//     A call that would have to wait for the operation it is made from, directly or
//     through operations that wait for each other, returns [ErrWouldDeadlock].
//   - A panic in a body makes its operation failed, with a [PanicError]; one in a
//     handler or callback is counted and harms nobody else. Nothing else recovers.
//   - Goroutines exist while there is work. An idle coordinator or sink owns none.
//     Timers may be pending, for what is to expire.
//
// # Handlers
//
// A handler runs on the goroutine that raises the signal, before Raise returns, in
// the order of subscription. While it blocks, the raiser waits; that is how a full
// coordinator further down slows the one further up. A handler that raises what
// it handles, over however many steps, is stopped when the chain of causes gets
// too long ([Propagation]) or, if it does not name its causes, when deliveries are
// nested 64 deep.
//
// Where the raiser should not wait, a [Dispatcher] or a [Processor] is given the
// signals and handles them in the background.
//
// # Shutting down
//
// Complete ends the intake. Flush waits for what has been accepted, Drain does
// both, Close cancels what runs. See [Lifecycle]. Drain what is upstream first.
//
// # Cost
//
// Raising a signal costs little more than reading the clock and taking a lock,
// allocates nothing, and does not depend on the size of the window or on how many
// subscribe to other names. Has of a name costs less than that, Count and reading a
// Monitor cost a lock. An operation costs one allocation, plus what it raises and
// stores; a key costs something only while it has operations.
//
// # Testing
//
// Everything takes its time from package time, so it runs under the fake clock of
// testing/synctest. Package coretest has the checks that everything with a
// lifecycle must pass, and helpers to expect signals.
package core
