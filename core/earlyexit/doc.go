// Package earlyexit ends the work of a coordinator when a signal says that it is enough.
//
// An [Exit] does that for any coordinator, and for each type that embeds a [core.Control]:
//
//	exit := earlyexit.On(checks, "verdict.*")
//
// The first signal that matches ends the intake, cancels what runs, and discards what
// waits. The cause is an [ExitedError], which names the signal.
//
// A [Collector] is a coordinator for one decision. It has an exit, and keeps the results:
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
// The signal may come from the work itself or from other code on the sink. Late items get
// the ExitedError. Results returns the results and says whether a signal or the last item
// ended the collector.
//
// Only signals after the exit was made count: an earlier signal, for another decision,
// ends nothing. Coordinators that share a sink and a pattern end together. To avoid that,
// give each its own sink, which is the default, or its own pattern.
//
// In package [github.com/ephemeralgo/ephemeral/core/waves], signals also start the work.
package earlyexit
