// Package flow makes the body of a durable item a flow: work of several steps that survives kill -9, is undone when it
// fails, and waits for days without holding anything.
//
//	func ship(ctx context.Context, o Order) error { // the body of a durable queue
//		stock, err := flow.Do(ctx, flow.Step[Stock]{Name: "reserve", Do: reserve(o), Compensate: release})
//		if err != nil {
//			return err // tried again; attempts count from the last step that was done
//		}
//		said, err := flow.Await(ctx, "approval", "approval.given, approval.refused", 48*time.Hour)
//		...
//
// The only rule: code between two steps may run again. The body begins from its start each time, and steps that were done answer from the store, by their names. Branches and
// loops are Go. Nothing replays, and the order of steps may change.
//
// # What is promised
//
//   - A step that has returned, and after which another one of the flow began, does not run again. The last step before the death of its process may run
//     twice, unless its effect is in the transaction of postgres.Step or sqlite.Step.
//   - The record of a step is written with the begin of the next one, and with the end of the attempt, under the token of the claim: a process that has lost
//     the item writes nothing. A step with a Compensate is also recorded before it begins. So n steps need n-1 commits, or n if the first one has a Compensate. Flows of a process share commits.
//   - A parked flow ([Await], [Sleep], a step with another class) is a row: no slot, goroutine, lease or heartbeat. It adds no attempt.
//   - It is decided once, in the store, whether a signal came before the deadline.
//
// # Undoing
//
// If the item would be dead, halted or cancelled, and a step with a Compensate has begun, the flow is undone first: also after Queue.Cancel, in each state. The body runs again. Steps that were
// done answer, all others return [ErrUndoing]; when all Compensates were seen, its context ends. Then the Compensates that were seen run backwards, each until it succeeds or has failed 8 times. If one fails for good, was not
// seen because the body has changed, or its result cannot be decoded, the flow is half undone: the item is Halted, also without a key, and its Err names the
// steps. Queue.Again goes on with undoing. After a flow was undone, Again begins without steps. A flow without Compensates goes on
// from the failed step. A lost lease undoes nothing, and a flow that is done is never undone.
//
// # A parked flow keeps its key
//
// The next item of the key waits until the flow has ended, for days if need be. So the key is that of the order, not that of the customer: a
// customer with one order that waits for approval has no other order until then.
//
// # Deploys
//
// Steps may be added, removed and put into another order while flows are under way. A renamed step is a new one: it runs again; [durable.SignalStray] names steps
// that nobody asked for. If the result has another type, decoding fails with an error that names the step. [Version] tells old flows from new
// ones; after a rollback, a program with a lower Options.Version gives newer flows back every 10 seconds, with [durable.SignalUnserved]. Package
// flowtest runs a body against the history of a flow.
package flow
