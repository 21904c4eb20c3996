package priorityprocessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Processor is one way to do the work.
type Processor[T any] struct {
	// Name is the key of the signals about the health of the processor. It must not be
	// blank. The processors of a Failover need different names.
	//
	//ephemeral:none
	Name string
	// Priority is 1 or more; 1 is the highest. Processors of the same priority take turns.
	Priority int
	// Do does the work. It is called on the goroutine of [Failover.Do].
	Do core.Work[T]
	// Probe returns nil if the processor works again. It is called while the processor is
	// unhealthy. nil means that items are the probes.
	Probe func(ctx context.Context) error
}

// A ResultProcessor is a [Processor] whose work has a result.
type ResultProcessor[In, Out any] struct {
	Name     string
	Priority int
	Do       core.ResultWork[In, Out]
	Probe    func(ctx context.Context) error
}

// Options configure a [Failover]. The zero value is the default.
type Options struct {
	// Name is the key of signals about the route. "" means "priorityprocessor".
	//
	//ephemeral:none
	Name string
	// Sink gets the signals of the Failover, and may bring commands. nil means a new sink.
	Sink *signals.Sink

	// Threshold is how many failures in a row make a processor unhealthy. 0 means 3.
	// Negative means that failures do not make it unhealthy.
	Threshold int
	// Timeout is how long an attempt may take. Then its context ends, and the error that
	// it returns is a failure. 0 and negative mean no limit.
	Timeout time.Duration
	// HealthyOnly gives no items to unhealthy processors, except as probes. Without it,
	// unhealthy processors are tried last, in order of priority.
	HealthyOnly bool
	// FailoverIf reports whether an error is a failure of the processor. If so, the next
	// processor is tried. If not, the item is at fault: Do returns the error, and the
	// attempt counts as a success of the processor. nil means that every error is a
	// failure. It must be safe for concurrent use.
	FailoverIf func(error) bool

	// ProbeAfter is the time from the moment at which a processor becomes unhealthy to its
	// first probe. 0 means 5 seconds. Negative means no probes. Then the processor becomes
	// healthy by [Failover.MarkHealthy], by [CommandHealthy], or if it is tried last and
	// succeeds.
	ProbeAfter time.Duration
	// MaxProbeAfter is the longest time between two probes. Each failed probe doubles the
	// time. 0 means a minute, or ProbeAfter if that is longer. Negative means no limit. A
	// value below ProbeAfter is an error.
	MaxProbeAfter time.Duration
	// ProbeTimeout is how long a Probe may take. Then its context ends. 0 means 5 seconds,
	// negative means no limit.
	ProbeTimeout time.Duration

	// Verbose raises [SignalStarted] and [SignalCompleted], two signals for every
	// attempt.
	Verbose bool
}

// maxProcessors is how many members a set can have.
const maxProcessors = 64

// resolved returns the options with defaults in place of zeros, or says what is wrong
// with them.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "priorityprocessor")
	o.Threshold = cmp.Or(o.Threshold, 3)
	o.ProbeAfter = cmp.Or(o.ProbeAfter, 5*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	switch {
	case o.MaxProbeAfter == 0:
		o.MaxProbeAfter = max(time.Minute, o.ProbeAfter)
	case o.MaxProbeAfter < 0:
		o.MaxProbeAfter = math.MaxInt64
	case o.MaxProbeAfter < o.ProbeAfter:
		return o, fmt.Errorf("priorityprocessor: Options.MaxProbeAfter of %q is %v, it must be at least ProbeAfter, %v",
			o.Name, o.MaxProbeAfter, o.ProbeAfter)
	}
	return o, nil
}

func checkProcessors[In, Out any](processors []ResultProcessor[In, Out]) error {
	switch n := len(processors); {
	case n == 0:
		return errors.New("priorityprocessor: there must be at least one processor")
	case n > maxProcessors:
		return fmt.Errorf("priorityprocessor: there are %d processors, there may be %d", n, maxProcessors)
	}
	taken := map[string]bool{}
	for i, p := range processors {
		switch {
		case strings.TrimSpace(p.Name) == "":
			return fmt.Errorf("priorityprocessor: the name of processor %d is %q, it must not be blank", i+1, p.Name)
		case taken[p.Name]:
			return fmt.Errorf("priorityprocessor: two of the processors have the name %q", p.Name)
		case p.Priority < 1:
			return fmt.Errorf("priorityprocessor: Priority of %q is %d, it must be at least 1", p.Name, p.Priority)
		case p.Do == nil:
			return fmt.Errorf("priorityprocessor: Do of %q is nil, it must be a function", p.Name)
		}
		taken[p.Name] = true
	}
	return nil
}
