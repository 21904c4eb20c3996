// Package keyedpriorityfanout runs the items of each user in order, one at a time, and urgent
// items first. Urgent items have a separate lane: an urgent item overtakes the items that
// wait, even items of the same user.
//
//	users, err := keyedpriorityfanout.New(Command.User, handle,
//		core.Lane{Depth: 100, CancelOn: "circuit.open.*"}, core.Options{MaxConcurrency: 8, Sink: sink})
//	...
//	id, err := users.Enqueue(ctx, command)
//	id, err = users.Lane(keyedpriorityfanout.Priority).TryEnqueue(ctx, urgent)
//
// [New] returns a [core.Coordinator] with keys and two lanes, [Priority] and [Normal]. The
// [core.Lane] has the settings for urgent items: how many may wait, how many run at once, and
// which signals refuse or defer them. Normal items ignore these settings. Stats shows how many
// items wait in each lane.
package keyedpriorityfanout
