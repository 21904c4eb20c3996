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
)

// A Processor is one way to do the work.
type Processor[T any] struct {
	// Name identifies the processor. It is the key of signals about its health.
	Name string
	// Priority is its rank; 1 is the highest. Processors of the same priority take turns.
	Priority int
	// Do does the work. It is called on the goroutine of [Failover.Do].
	Do core.Work[T]
	// Probe checks whether the processor works again, and returns nil if it does. It is
	// called while the processor is unhealthy. Nil means that items are the probes.
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
	Name string
	// Sink is where signals are raised, and where commands come from; nil means a sink
	// of its own.
	Sink *core.Sink

	// Threshold is how many failures in a row make a processor unhealthy; 0 means 3,
	// negative that failures do not.
	Threshold int
	// Timeout is how long an attempt may take before its context ends; the error that it
	// then returns is a failure. 0 and negative mean no limit but that of the item.
	Timeout time.Duration
	// HealthyOnly gives no items to unhealthy processors, unless a probe is due. Without
	// it they are the last resort: they are tried, in order of priority, when all others
	// have failed the item.
	HealthyOnly bool
	// FailoverIf reports whether an error is a failure of the processor, so that the next
	// processor is tried. If it is not, the item is at fault: Do returns the error, and
	// the processor counts as working. Nil means that every error is a failure.
	FailoverIf func(error) bool

	// ProbeAfter is how long after it has become unhealthy a processor is probed; 0
	// means 5 seconds. Negative means that it is not probed: then it becomes healthy by
	// [Failover.MarkHealthy], by [CommandHealthy], or when it does an item as the last
	// resort.
	ProbeAfter time.Duration
	// MaxProbeAfter is the longest time between two probes. Each failed probe doubles
	// the time. 0 means a minute, or ProbeAfter if that is longer; negative no limit.
	MaxProbeAfter time.Duration
	// ProbeTimeout is how long a Probe may take before its context ends; 0 means 5
	// seconds, negative no limit.
	ProbeTimeout time.Duration

	// Verbose raises [SignalStarted] and [SignalCompleted], two signals for every
	// attempt.
	Verbose bool
}

// maxProcessors is how many fit into a set of members.
const maxProcessors = 64

// resolved returns the options with defaults in place of zeros, or says what is wrong
// with them.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "priorityprocessor")
	o.Threshold = cmp.Or(o.Threshold, 3)
	o.ProbeAfter = cmp.Or(o.ProbeAfter, 5*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 5*time.Second)
	if o.Sink == nil {
		o.Sink = core.NewSink(core.SinkOptions{})
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
