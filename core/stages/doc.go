// Package stages takes a batch of items through the stages of a pipeline, and ends a stage
// for all items before the next one begins. Only items that pass a stage go through the
// next one.
//
//	photos, err := stages.New([]stages.Stage[Photo]{
//		{Name: "decode", Work: decode},
//		{Name: "resize", Work: resize, MaxConcurrency: 2},
//		{Name: "publish", When: "approval.granted", Work: publish},
//	}, core.Options{Sink: sink})
//	...
//	results, err := photos.Run(ctx, batch)
//
// Within a stage, several items are worked on at once. The work gets an item and returns
// the item for the next stage. An item whose work fails goes no further. Its [Result]
// says where it failed and why. The other items go on. The run ends when no item is left.
//
// A stage with [Stage.When] starts when a matching signal is on the sink. A signal that
// was raised earlier also counts while it is on the sink, so no signal is missed.
// Stages raise signals themselves: [SignalStart], [SignalComplete], [SignalFailed].
//
// Use stages if a step has to end for all items before the next one begins, as in import,
// check, publish. If each item may go on by itself, let the work of one [core.Coordinator]
// enqueue on the next.
package stages
