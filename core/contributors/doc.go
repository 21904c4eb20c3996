// Package contributors waits until enough of a fixed set of contributors have
// completed, or until that is no longer possible. Each of them either completes with a
// result or fails. Any number of callers can wait:
//
//	detectors, err := contributors.New[Verdict]([]string{"lexical", "behavior", "network"}, contributors.Options{})
//	...
//	for _, name := range detectors.Snapshot().Pending {
//		go func() {
//			verdict, err := detect(ctx, name)
//			if err != nil {
//				detectors.Fail(name, err)
//				return
//			}
//			detectors.Complete(name, verdict)
//		}()
//	}
//	two, err := detectors.Wait(ctx, 2)
//
// Callers may wait for different numbers, at different times. Each gets its answer as
// soon as the number is reached, and also as soon as so many have failed that it cannot
// be reached: an [ErrUnreachable], whose text says which contributors failed and why.
//
// The outcome of a contributor is final. If the contributors are not known beforehand,
// let them raise signals and count these with package quorum.
package contributors
