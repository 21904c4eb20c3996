// Package volatile evicts operations from the window of their coordinator (the list of
// operations that it shows) as soon as a signal says so. So the window of a coordinator with
// very many operations shows the operations that matter.
//
//	evictor, err := volatile.New(jobs, volatile.Options{})
//	if err != nil {
//		return err
//	}
//	defer evictor.Close()
//
// From then on, an operation is killed if it raises "kill.job" or another signal that matches
// [Options.Pattern]:
//
//   - If it is finished, it is evicted at once, even if it is pinned.
//   - If it waits to run, it is cancelled with the cause [ErrKilled], and evicted.
//   - If it runs, its context is cancelled with the same cause. It is evicted when its work has
//     returned. Until then it keeps its slot and is shown.
//
// An operation may kill itself. If its work then returns nil, it has succeeded. The counters of
// the coordinator stay exact. Functions of [core.Control.OnFinalized] are called once for the
// operation. Its [core.Echo] has all its signals.
//
// A signal of an operation of another coordinator on the sink has no effect, except that
// [SignalMissed] is raised. A signal that is raised on the sink itself has no effect either. But
// with [Options.ByKey], it kills the operation whose id is its key.
package volatile
