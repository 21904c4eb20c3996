// Package earlyexit collects the results of work until a signal says that enough is
// known.
//
//	checks, err := earlyexit.New(check, "verdict.*", nil, core.Options{})
//	if err != nil {
//		return err
//	}
//	defer checks.Close()
//	for _, name := range names {
//		if _, err := checks.Enqueue(ctx, name); err != nil {
//			break // an ExitedError says which signal came
//		}
//	}
//	outcome, err := checks.Results(ctx)
//
// A [Collector] is a coordinator of one decision. It does work for every item, a
// bounded number at once, and keeps the results. When a signal matching the pattern
// is raised, by the work itself or by anybody on the sink, what runs is cancelled,
// what waits is discarded, and late items get an [ExitedError]. Results says how it
// ended, with a signal or with the last item, and with what.
//
// Signals count from when the collector is made: what was raised before, for another
// decision, does not end this one. Collectors that share a sink end together; let
// each have its own, which is the default, or patterns of their own, if they are not
// to.
package earlyexit
