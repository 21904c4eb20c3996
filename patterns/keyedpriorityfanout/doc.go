// Package keyedpriorityfanout runs work for many users, each user's items in order, with a
// lane for urgent items: an urgent item overtakes the items that wait, those of its own user
// as well, and still no two items of a user run at once.
//
//	users, err := keyedpriorityfanout.New(Command.User, handle,
//		core.Lane{Depth: 100, CancelOn: "circuit.open.*"}, core.Options{MaxConcurrency: 8, Sink: sink})
//	...
//	id, err := users.Enqueue(ctx, command)
//	id, err = users.Lane(keyedpriorityfanout.Priority).TryEnqueue(ctx, urgent)
//
// What New returns is a [core.Coordinator] with keys and two lanes, [Priority] and
// [Normal]. The lane that New is given says how many urgent items may wait, how many run at
// once, and which signals refuse or defer them; these do not affect normal items. Its
// Stats show how many items wait in each lane.
package keyedpriorityfanout
