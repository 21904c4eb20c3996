// Package volatile evicts operations from their coordinator's window as soon as a signal
// says so, instead of when they are old or many. So the window of a coordinator with a
// great many operations shows the operations that matter.
//
//	evictor, err := volatile.New(jobs, volatile.Options{})
//	if err != nil {
//		return err
//	}
//	defer evictor.Close()
//
// From then on an operation that raises "kill.job", or another signal that matches
// [Options.Pattern], is killed, which means:
//
//   - an operation that is finished is evicted at once, pinned or not;
//   - one that waits to run is cancelled, with [ErrKilled] as the cause, and evicted;
//   - one that runs has its context cancelled, with the same cause, and is evicted when
//     its body has returned. Until then it keeps its slot and stays visible.
//
// An operation may kill itself: if its body then returns nil it has succeeded all the
// same. With [Options.LetFinish] nothing is cancelled. In every case the coordinator's
// counters stay exact, OnFinalized is called once, and the echo has all signals of the
// operation, as long as the coordinator remembers echoes.
//
// Signals of operations of other coordinators on the sink name no operation of this
// coordinator: they are counted as missed, and change nothing. Signals raised directly on
// the sink are ignored, unless with [Options.ByKey], by which other code can kill an
// operation.
package volatile
