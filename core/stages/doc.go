// Package stages takes a batch of items through the stages of a pipeline, one
// stage after the other: all items that are left go through the first, and when
// it is over, those that passed it go through the second.
//
//	photos, err := stages.New([]stages.Stage[Photo]{
//		{Name: "decode", Work: decode},
//		{Name: "resize", Work: resize, MaxConcurrency: 2},
//		{Name: "publish", When: "approval.granted", Work: publish},
//	}, core.Options{Sink: sink})
//	...
//	results, err := photos.Run(ctx, batch)
//
// Within a stage items are worked on side by side. The work gets an item and
// returns what goes on to the next stage. An item whose work fails goes no
// further, and its [Result] says where it failed and why; the others go on. When
// none is left, the pipeline ends.
//
// A stage with [Stage.When] starts when a matching signal is on the sink. A signal
// that was raised before counts as long as it is there, so nothing is missed and
// nothing polls. Stages say on the sink what they do: [SignalStart],
// [SignalComplete], [SignalFailed].
//
// Stages are for work that has to be finished for all before it goes on for any,
// as in import, check, publish. Where each item may go on by itself, let the work
// of one [core.Coordinator] enqueue on the next.
package stages
