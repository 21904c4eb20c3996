// Package anomalydetector says when there are more signals of some kind than there should
// be: more than a threshold, or more than usual.
//
//	errors, err := anomalydetector.New(sink, anomalydetector.Options{
//		Name: "errors", Pattern: "error.*", Threshold: 5, Window: 10 * time.Second,
//	})
//	if err != nil {
//		return err
//	}
//	defer errors.Close()
//
// While five errors are not older than ten seconds, [Detector.Anomalous] is true and the
// fact "anomaly.errors" is held on the sink. So a coordinator can defer or refuse items
// (core.Options.DeferOn, core.Options.CancelOn), a handler can raise an alarm, and Explain
// names the detector. The fact is released when enough errors are older than the window;
// nothing has to be called for that.
//
// Signals are counted as they arrive. Other signals, however many, do not change the count,
// and neither does the capacity of the sink.
//
// With [Options.Deviations] the detector learns what is usual. It keeps a moving average of
// the count in a window, and how far counts are from it, and reports counts that are too
// many deviations above. What lasts becomes usual after some windows.
//
// Use patterns/circuitbreaker instead to refuse calls to a service that fails.
package anomalydetector
