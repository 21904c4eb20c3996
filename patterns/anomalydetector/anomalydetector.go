package anomalydetector

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// prefix is the start of the names of the held signals.
const prefix = "anomaly."

// Options configure a [Detector]. The zero value is the default.
type Options struct {
	// Name is the end of the name of the held signal, "anomaly.NAME". "" means "detector". It
	// must not contain the characters of patterns: * ? and the comma.
	//
	//ephemeral:none
	Name string
	// Pattern matches the signals that are counted; "" means "error.*". See [signals.Match]. It
	// must not match the held signal.
	//
	//ephemeral:pattern
	Pattern string
	// Window is how long a signal counts. A signal that is exactly this old still counts. 0
	// means 10 seconds.
	Window time.Duration
	// Threshold: this number of signals in Window is an anomaly. 0 means 5, or none if
	// Deviations is set; negative means none. It is at most [signals.MonitorCap].
	Threshold int
	// Deviations: a count is an anomaly if it is this many deviations above the average. 3 is
	// a usual value. 0 or negative means none. If Threshold is set, too, the lower limit
	// counts. Counts above [signals.MonitorCap] count as MonitorCap.
	Deviations float64
}

func (o Options) resolved() (Options, error) {
	o.Name, o.Pattern = cmp.Or(o.Name, "detector"), cmp.Or(o.Pattern, "error.*")
	o.Window = cmp.Or(o.Window, 10*time.Second)
	if o.Deviations > 0 {
		o.Threshold = cmp.Or(o.Threshold, -1)
	}
	o.Threshold = max(0, cmp.Or(o.Threshold, 5))
	switch {
	case strings.ContainsAny(o.Name, "*?,"):
		return o, fmt.Errorf("anomalydetector: Options.Name is %q, but must not have the characters * ? and comma", o.Name)
	case signals.Match(o.Pattern, prefix+o.Name):
		return o, fmt.Errorf("anomalydetector: Options.Pattern is %q, but must not match the detector's own fact, %s", o.Pattern, prefix+o.Name)
	case o.Window < 0:
		return o, fmt.Errorf("anomalydetector: Options.Window is %v, but must be more than 0", o.Window)
	case o.Threshold > signals.MonitorCap:
		return o, fmt.Errorf("anomalydetector: Options.Threshold is %d, but must be at most %d", o.Threshold, signals.MonitorCap)
	case !(o.Deviations > 0) && o.Threshold == 0:
		return o, fmt.Errorf("anomalydetector: Options.Threshold is none and Options.Deviations is %v, but there must be one of them", o.Deviations)
	}
	return o, nil
}

// A Detector counts signals, and holds a signal while there are too many. Make one with [New],
// and close it. All methods are safe for concurrent use. It has no goroutine. A timer runs
// only while there are too many signals. It costs a monitor of the sink. With Deviations, it
// costs a handler and another monitor as well.
type Detector struct {
	opts        Options // resolved
	sink        *signals.Sink
	monitor     *signals.Monitor
	unsubscribe func()

	anomalous, closed atomic.Bool
	effects           outbox.Outbox
	release           func() // of effects

	nextSample atomic.Int64     // time of the next sample, in nanoseconds of Unix time
	sampling   atomic.Bool      // guards the fields below
	sinceLast  *signals.Monitor // counts signals since the last sample; nil without Deviations
	usual      baseline
	limit      int // 0 before the first limit is known
	cancel     func()
}

// New makes a detector for the signals of a sink, or for the signals that the operations of
// a coordinator raise. Signals that are present already count as well. New returns an error
// if the options are not valid.
//
//ephemeral:raises anomaly.{Options.Name|detector}
func New(on signals.Sensor, opts Options) (*Detector, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	if core.IsNil(on) {
		return nil, errors.New("anomalydetector: New needs a sink or a coordinator, not nil")
	}
	d := &Detector{opts: opts, sink: on.Sink(), release: func() {}, cancel: func() {}, unsubscribe: func() {}}
	d.monitor = on.Monitor(opts.Pattern, opts.Window)
	if opts.Threshold > 0 {
		d.watch(opts.Threshold)
	}
	if opts.Deviations > 0 {
		d.sinceLast = on.Monitor(opts.Pattern, 0)
		d.nextSample.Store(time.Now().UnixNano() + int64(opts.Window))
		d.unsubscribe = d.sink.Subscribe(opts.Pattern, d.sample)
	}
	return d, nil
}

// Anomalous reports whether there are too many signals. It costs an atomic load.
func (d *Detector) Anomalous() bool { return d.anomalous.Load() }

// Count returns the number of signals in the window. It costs a lock.
func (d *Detector) Count() int { return d.monitor.Count() }

// Close ends the counting and releases the held signal. It may be called many times, from
// anywhere. It returns nil.
func (d *Detector) Close() error {
	d.closed.Store(true)
	d.unsubscribe()
	d.monitor.Stop()
	if d.sinceLast != nil {
		d.sinceLast.Stop()
	}
	d.hold(false)
	return nil
}

// sample adds the count of a window to the baseline, and changes the limit. It does so at the
// first signal after the window. A count above the limit is added as the limit, so that it
// does not become usual at once.
func (d *Detector) sample(s signals.Signal) {
	now := s.Time.UnixNano()
	if now < d.nextSample.Load() || !d.sampling.CompareAndSwap(false, true) {
		return
	}
	defer d.sampling.Store(false)
	d.usual.add(min(d.sinceLast.Count(), d.usual.limit(d.opts.Deviations)))
	d.sinceLast.Reset()
	empty := (now - d.nextSample.Swap(now+int64(d.opts.Window))) / int64(d.opts.Window)
	for range min(empty, 100) { // more rounds would not change the average
		d.usual.add(0)
	}
	limit := d.usual.limit(d.opts.Deviations)
	if d.opts.Threshold > 0 {
		limit = min(limit, d.opts.Threshold)
	}
	if limit != d.limit && (!d.anomalous.Load() || d.Count() < limit) {
		d.watch(limit)
	}
}

// watch holds the signal while the count is not below the limit.
func (d *Detector) watch(limit int) {
	d.cancel()
	d.hold(false)
	d.limit, d.cancel = limit, d.monitor.OnCount(limit, limit-1, d.hold)
}

// hold holds the signal or releases it. Only Close may run at the same time.
func (d *Detector) hold(anomalous bool) {
	d.effects.Add(func() {
		d.release()
		d.anomalous.Store(anomalous && !d.closed.Load())
		if d.anomalous.Load() {
			d.release = d.sink.Hold(prefix+d.opts.Name, "", 0)
		}
	})
	d.effects.Run()
}

// A baseline is a moving average of counts, with their variance.
type baseline struct {
	samples        int
	mean, variance float64
}

const (
	weight   = 1.0 / 8 // weight of the newest sample
	learning = 8       // number of samples before there is a limit
)

func (b *baseline) add(count int) {
	b.samples++
	w := max(weight, 1/float64(b.samples))
	diff := float64(count) - b.mean
	b.mean += w * diff
	b.variance = (1 - w) * (b.variance + w*diff*diff)
}

// limit is the lowest count that is an anomaly. If signals come at random, their deviation is
// the square root of their mean. So limit uses at least that deviation.
func (b *baseline) limit(deviations float64) int {
	if b.samples < learning {
		return math.MaxInt
	}
	return int(min(math.Ceil(b.mean+deviations*max(1, math.Sqrt(max(b.mean, b.variance)))), math.MaxInt32))
}
