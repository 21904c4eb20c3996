// Package contributors keeps track of a fixed set of contributors, each of which
// either completes with a result or fails, and lets any number of others wait until
// enough have completed:
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
// Those who wait may ask for different numbers, at different times. Each is answered
// as soon as the number is reached, and also as soon as so many have failed that it
// cannot be: with an [UnreachableError], which says who failed and why.
//
// The outcome of a contributor is final. Where it is not known beforehand who will
// contribute, let them raise signals, and count these with package quorum.
package contributors
