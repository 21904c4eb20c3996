package priorityprocessor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Processor is one way to do the work.
type Processor[T any] struct {
	// Name tells processors apart. It is the key of signals about its health.
	Name string
	// Priority is its rank, 1 for the highest. Processors of the same priority
	// take turns.
	Priority int
	// Do does the work. It is called on the goroutine of [Failover.Do].
	Do core.Work[T]
	// Probe finds out whether it works again, and returns nil if so. It is
	// called while the processor is unhealthy. Nil means that items find out.
	Probe func(ctx context.Context) error
}

// Options configure a [Failover]. The zero value is the default.
type Options struct {
	// Name tells Failovers apart: the key of signals about the route. "" means
	// "priorityprocessor".
	Name string
	// Sink is where signals are raised and heeded; nil means one of its own.
	Sink *core.Sink

	// Threshold is how many failures in a row make a processor unhealthy; 0
	// means 3, negative that failures do not.
	Threshold int
	// Timeout is how long an attempt may take before its context ends; the error
	// it then returns is its failure. 0 and negative mean no limit but the
	// item's own.
	Timeout time.Duration
	// HealthyOnly keeps items from processors that are unhealthy, unless a probe
	// is due. Without it they are tried when all others have failed the item, in
	// order of priority.
	HealthyOnly bool
	// FailoverIf reports whether an error of a processor is a failure of that
	// processor, so that the next one is tried. If not, it is the fault of the
	// item, Do returns it, and the processor counts as working. Nil means that
	// every error is a failure.
	FailoverIf func(error) bool

	// ProbeAfter is how long after it has become unhealthy a processor is
	// probed; 0 means 5 seconds, negative that it is not probed: then only
	// [Failover.Reset] and [CommandHealthy] restore it, or an item that it does
	// as the last resort.
	ProbeAfter time.Duration
	// MaxProbeAfter is the longest time between two probes; each that fails
	// doubles it. 0 means a minute, or ProbeAfter if that is longer.
	MaxProbeAfter time.Duration
	// ProbeTimeout is how long a Probe may take before its context ends; 0 means
	// 5 seconds, negative no limit.
	ProbeTimeout time.Duration

	// Verbose raises [SignalStarted] and [SignalCompleted], which costs two
	// signals for every attempt.
	Verbose bool
}

// maxProcessors is as many as fit into the set of those an item has tried.
const maxProcessors = 64

// normalize replaces zeros by defaults and says what cannot be.
func (o *Options) normalize() error {
	switch {
	case o.MaxProbeAfter < 0:
		return fmt.Errorf("priorityprocessor: MaxProbeAfter is %v, it must not be negative", o.MaxProbeAfter)
	}
	if o.Name == "" {
		o.Name = "priorityprocessor"
	}
	if o.Sink == nil {
		o.Sink = core.NewSink(core.SinkOptions{})
	}
	if o.Threshold == 0 {
		o.Threshold = 3
	}
	if o.ProbeAfter == 0 {
		o.ProbeAfter = 5 * time.Second
	}
	if o.MaxProbeAfter == 0 {
		o.MaxProbeAfter = max(time.Minute, o.ProbeAfter)
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = 5 * time.Second
	}
	if o.MaxProbeAfter < o.ProbeAfter {
		return fmt.Errorf("priorityprocessor: MaxProbeAfter is %v, it must be at least ProbeAfter, %v", o.MaxProbeAfter, o.ProbeAfter)
	}
	return nil
}

func check[T any](processors []Processor[T]) error {
	switch n := len(processors); {
	case n == 0:
		return errors.New("priorityprocessor: New needs at least one processor")
	case n > maxProcessors:
		return fmt.Errorf("priorityprocessor: there are %d processors, there may be %d", n, maxProcessors)
	}
	seen := map[string]bool{}
	for i, p := range processors {
		switch {
		case strings.TrimSpace(p.Name) == "":
			return fmt.Errorf("priorityprocessor: processors[%d].Name is %q, it must not be blank", i, p.Name)
		case seen[p.Name]:
			return fmt.Errorf("priorityprocessor: processors[%d].Name is %q, as that of another; names must differ", i, p.Name)
		case p.Priority < 1:
			return fmt.Errorf("priorityprocessor: Priority of %q is %d, it must be at least 1, the highest", p.Name, p.Priority)
		case p.Do == nil:
			return fmt.Errorf("priorityprocessor: Do of %q is nil, it must be a function", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}
