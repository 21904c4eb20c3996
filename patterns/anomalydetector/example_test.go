package anomalydetector_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
)

// Five errors in ten seconds are an anomaly. During this time, the detector holds a signal.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	detector := core.Must(anomalydetector.New(sink, anomalydetector.Options{
		Name:      "errors",
		Pattern:   "error.*",
		Threshold: 5,
		Window:    10 * time.Second,
	}))
	defer detector.Close()
	sink.Subscribe("anomaly.*", func(s signals.Signal) { fmt.Println("alarm:", s.Name) }) // alarm: anomaly.errors

	for range 7 {
		sink.Raise("error.timeout")
	}
	fmt.Println(detector.Anomalous(), detector.Count(), sink.Has("anomaly.errors")) // true 7 true
	// Output:
	// alarm: anomaly.errors
	// true 7 true
}
