// Package earlyexit collects the results of work until a signal says that they are enough.
//
//	checks, err := earlyexit.New(check, "verdict.*", nil, core.Options{})
//	if err != nil {
//		return err
//	}
//	defer checks.Close()
//	for _, name := range names {
//		if _, err := checks.Enqueue(ctx, name); err != nil {
//			break // an ExitedError names the signal
//		}
//	}
//	outcome, err := checks.Results(ctx)
//
// A [Collector] is a coordinator for one decision. It does work for every item, a bounded
// number at once, and keeps the results. When a signal matching the pattern is raised, by
// the work itself or by other code on the sink, running work is cancelled, waiting items
// are discarded, and late items get an [ExitedError]. Results returns the results and
// says whether a signal or the last item ended the collector.
//
// Signals count from when the collector is made: an earlier signal, for another decision,
// does not end it. Collectors that share a sink and a pattern end together. To avoid that,
// give each its own sink, which is the default, or its own pattern.
package earlyexit
