package telemetry

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/ephemeralgo/ephemeral/core"
)

// The counters of signals; see the documentation of the package.
const (
	CounterSignals = "ephemeral.signals"
	CounterErrors  = "ephemeral.errors"
	CounterPerf    = "ephemeral.perf"
)

// counters count signals.
type counters struct {
	signals, errors, perf metric.Int64Counter
	families              []string
	maxNames              int

	mu     sync.RWMutex
	known  map[counted][]metric.AddOption // the attributes of names, and of the rest of each family, with ""
	number []int                          // of names of each family
}

// counted is what is counted apart.
type counted struct {
	family int
	name   string
}

func newCounters(m metric.Meter, opts Options) (*counters, error) {
	c := &counters{families: families(opts.Signals), maxNames: opts.MaxNames, known: map[counted][]metric.AddOption{}}
	c.number = make([]int, len(c.families))
	for i := range c.families {
		c.known[counted{i, ""}] = c.attributes(i, "other")
	}
	var errs [3]error
	c.signals, errs[0] = m.Int64Counter(CounterSignals, metric.WithDescription("Signals raised."))
	c.errors, errs[1] = m.Int64Counter(CounterErrors, metric.WithDescription("Signals raised whose first segment is error."))
	c.perf, errs[2] = m.Int64Counter(CounterPerf, metric.WithDescription("Signals raised whose first segment is perf."))
	return c, errors.Join(errs[:]...)
}

// add counts a signal.
func (c *counters) add(s core.Signal) {
	ctx := context.Background()
	if !c.signals.Enabled(ctx) && !c.errors.Enabled(ctx) && !c.perf.Enabled(ctx) {
		return
	}
	attributes := c.of(s.Name)
	c.signals.Add(ctx, 1, attributes...)
	switch first(s.Name) {
	case "error":
		c.errors.Add(ctx, 1, attributes...)
	case "perf":
		c.perf.Add(ctx, 1, attributes...)
	}
}

// of returns the attributes that signals of this name are counted with.
func (c *counters) of(name string) []metric.AddOption {
	family := 0
	for i, pattern := range c.families {
		if core.Match(pattern, name) {
			family = i
			break
		}
	}
	name, _, _ = strings.Cut(name, ":")
	at := counted{family, name}
	c.mu.RLock()
	attributes, ok := c.known[at]
	c.mu.RUnlock()
	if ok {
		return attributes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch attributes, ok := c.known[at]; {
	case ok:
		return attributes
	case c.maxNames >= 0 && c.number[family] >= c.maxNames:
		return c.known[counted{family, ""}]
	}
	c.number[family]++
	c.known[counted{family, strings.Clone(name)}] = c.attributes(family, name)
	return c.known[at]
}

func (c *counters) attributes(family int, name string) []metric.AddOption {
	set := attribute.NewSet(attribute.String("family", c.families[family]), attribute.String("signal", strings.Clone(name)))
	return []metric.AddOption{metric.WithAttributeSet(set)}
}

// first returns the first segment of a name: up to a dot, a colon or the end.
func first(name string) string {
	if i := strings.IndexAny(name, ".:"); i >= 0 {
		return name[:i]
	}
	return name
}

// families returns the alternatives of a pattern.
func families(pattern string) (all []string) {
	for one := range strings.SplitSeq(pattern, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}
