package anomalydetector_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
)

// bubble runs a test with a detector on a sink of capacity 2.
func bubble(t *testing.T, opts anomalydetector.Options, test func(*testing.T, *signals.Sink, *anomalydetector.Detector)) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 2})
		coretest.NothingLeft(t, sink, func() {
			d, err := anomalydetector.New(sink, opts)
			require.NoError(t, err)
			defer d.Close()
			test(t, sink, d)
		})
	})
}

func raise(sink *signals.Sink, n int) {
	for range n {
		sink.Raise("error.disk")
	}
}

// A count equal to the threshold is an anomaly, and a signal as old as the window counts.
// Other signals change nothing, although they evict signals that count.
func TestThreshold(t *testing.T) {
	bubble(t, anomalydetector.Options{Name: "errors"}, func(t *testing.T, sink *signals.Sink, d *anomalydetector.Detector) {
		expect := func(count int, anomalous bool) {
			t.Helper()
			synctest.Wait()
			assert.Equal(t, count, d.Count())
			assert.Equal(t, anomalous, d.Anomalous())
			assert.Equal(t, anomalous, sink.Has("anomaly.errors"))
		}
		raise(sink, 1)
		time.Sleep(time.Second)
		raise(sink, 3)
		for range 100 {
			sink.Raise("noise")
		}
		expect(4, false)
		raise(sink, 1)
		expect(5, true)
		time.Sleep(9 * time.Second)
		expect(5, true)
		time.Sleep(time.Nanosecond)
		expect(4, false)
		raise(sink, 2)
		expect(6, true)
	})
}

// Detectors do not depend on each other, and one of a coordinator sees the signals of its
// operations only.
func TestDetectorsAreIndependent(t *testing.T) {
	bubble(t, anomalydetector.Options{Name: "a"}, func(t *testing.T, sink *signals.Sink, a *anomalydetector.Detector) {
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: sink}))
		b := core.Must(anomalydetector.New(c, anomalydetector.Options{Name: "b", Threshold: 1}))
		raise(sink, 5)
		assert.True(t, a.Anomalous())
		assert.False(t, b.Anomalous())
		require.NoError(t, c.Close())
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		assert.False(t, a.Anomalous())
		assert.Zero(t, sink.Stats().Held)
	})
}

// Random traffic is no anomaly. Five times as much is an anomaly, and so is traffic after
// silence. A level that lasts becomes usual.
func TestDeviations(t *testing.T) {
	opts := anomalydetector.Options{Deviations: 5, Window: time.Minute}
	bubble(t, opts, func(t *testing.T, sink *signals.Sink, d *anomalydetector.Detector) {
		alarms := 0
		defer sink.Subscribe("anomaly.detector", func(signals.Signal) { alarms++ })()
		rnd := rand.New(rand.NewPCG(1, 2))
		traffic := func(windows, perWindow int) {
			for end := time.Now().Add(time.Duration(windows) * time.Minute); time.Now().Before(end); {
				time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Minute) / float64(perWindow)))
				raise(sink, 1)
			}
			synctest.Wait()
		}
		traffic(300, 100)
		assert.Zero(t, alarms, "as usual")
		for range 3 {
			traffic(1, 500)
			assert.True(t, d.Anomalous())
			assert.Equal(t, 1, alarms)
		}
		traffic(50, 500)
		assert.False(t, d.Anomalous(), "usual by now")
		time.Sleep(100 * time.Minute)
		traffic(1, 2)
		assert.False(t, d.Anomalous())
		raise(sink, 20)
		assert.True(t, d.Anomalous(), "nothing was usual")
		time.Sleep(time.Minute + 1)
		synctest.Wait()
		assert.False(t, d.Anomalous(), "it ends without another signal")
	})
}

// A hundred signals in each window deviate by ten, even if there were a hundred each time.
func TestRegularTraffic(t *testing.T) {
	bubble(t, anomalydetector.Options{Deviations: 3}, func(t *testing.T, sink *signals.Sink, d *anomalydetector.Detector) {
		for range 20 {
			raise(sink, 100)
			time.Sleep(10*time.Second + 1)
		}
		raise(sink, 125)
		assert.False(t, d.Anomalous())
		raise(sink, 10)
		assert.True(t, d.Anomalous())
	})
}

// With both options, the threshold also applies to usual counts, and while the detector is
// still learning.
func TestDeviationsBesideAThreshold(t *testing.T) {
	opts := anomalydetector.Options{Deviations: 3, Threshold: 20}
	bubble(t, opts, func(t *testing.T, sink *signals.Sink, d *anomalydetector.Detector) {
		for range 10 {
			raise(sink, 19)
			assert.False(t, d.Anomalous())
			raise(sink, 1)
			assert.True(t, d.Anomalous())
			time.Sleep(11 * time.Second)
		}
	})
}

// A handler of the held signal may close the detector.
func TestCloseFromAHandler(t *testing.T) {
	bubble(t, anomalydetector.Options{Deviations: 1, Threshold: 1}, func(t *testing.T, sink *signals.Sink, d *anomalydetector.Detector) {
		defer sink.Subscribe("anomaly.*", func(signals.Signal) { assert.NoError(t, d.Close()) })()
		raise(sink, 1)
		assert.False(t, d.Anomalous())
	})
}

func TestOptionsThatAreWrong(t *testing.T) {
	for name, opts := range map[string]anomalydetector.Options{
		"Name":       {Name: "a*"},
		"Pattern":    {Pattern: "*"},
		"Window":     {Window: -1},
		"Threshold":  {Threshold: signals.MonitorCap + 1},
		"Deviations": {Deviations: math.NaN(), Threshold: -1},
	} {
		_, err := anomalydetector.New(signals.NewSink(signals.SinkOptions{}), opts)
		assert.ErrorContains(t, err, "anomalydetector: ")
		assert.ErrorContains(t, err, "Options."+name)
	}
	_, err := anomalydetector.New(nil, anomalydetector.Options{})
	assert.ErrorContains(t, err, "not nil")
}
