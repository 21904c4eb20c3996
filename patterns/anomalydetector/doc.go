// Package anomalydetector detects that there are too many signals of some kind: at least a
// threshold, or more than usual.
//
//	errors, err := anomalydetector.New(sink, anomalydetector.Options{
//		Name: "errors", Pattern: "error.*", Threshold: 5, Window: 10 * time.Second,
//	})
//	if err != nil {
//		return err
//	}
//	defer errors.Close()
//
// While there are five errors that are not older than ten seconds, [Detector.Anomalous]
// returns true, and the signal "anomaly.errors" is held on the sink. So a coordinator can
// defer or refuse items (core.Options.DeferOn, core.Options.CancelOn), a handler can raise an
// alarm, and Explain names the signal. When fewer than five errors are younger than that, the
// signal is released. You need not call a method for that.
//
// Signals are counted as they arrive. The count does not depend on other signals, nor on the
// capacity of the sink.
//
// With [Options.Deviations], the detector learns which counts are usual. It keeps a moving
// average of the count in a window, and the usual deviation from it. A window without signals
// counts as 0, and is added when the next signal comes. The detector reports counts that are
// too many deviations above the average. If a high count lasts, it becomes usual after some
// windows.
//
// To refuse calls to a service that fails, use patterns/circuitbreaker instead.
package anomalydetector
