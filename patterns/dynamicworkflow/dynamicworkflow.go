package dynamicworkflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Workflow]. The zero value is the default.
type Options struct {
	// Route chooses the priority with which an item starts; nil means Best(2).
	Route Route
	// Min and Max bound the number of items that run at once; 0 means 1 and 32. The first
	// limit is [core.Options.MaxConcurrency]. Its default is 4, or Min if that is more, or
	// Max if that is less.
	Min, Max int
	// Step is added to the limit, or subtracted from it; 0 means 2.
	Step int
	// Interval is how long results are counted before the limit is adapted to them; 0 means
	// 10 s. See "Concurrency" in the package documentation. If Interval is negative, only the
	// signals system.load.high and system.load.low change the limit.
	Interval time.Duration
}

// Workflow is a coordinator with one queue for each entity. It routes its items and
// adapts its concurrency. Make one with New; all methods are safe for
// concurrent use.
type Workflow[T any] struct {
	*core.Coordinator[T]
	system *system
}

// system is the part of a workflow that does not depend on the type of items.
type system struct {
	core.Control
	opts      Options
	unhealthy atomic.Uint32                // priorities, as bits
	trials    [priorities + 1]atomic.Int64 // when the next item is routed to an unhealthy priority; Unix nanoseconds
	measuring atomic.Bool                  // an interval has begun
	measured  Metrics                      // counts until the end of the last interval; only adapt uses them

	events outbox.Outbox // changes of priorities and of the limit, one after the other
	timer  *time.Timer   // the end of the interval; only events use this field and the next
	ended  bool

	mu       sync.Mutex
	monitors map[time.Duration][]*signals.Monitor
}

// resolved returns both options with defaults, or an error if they are not valid.
func (o Options) resolved(c core.Options) (Options, core.Options, error) {
	if o.Route == nil {
		o.Route = Best(2)
	}
	o.Min, o.Max, o.Step, o.Interval = cmp.Or(o.Min, 1), cmp.Or(o.Max, 32), cmp.Or(o.Step, 2), cmp.Or(o.Interval, 10*time.Second)
	c.Name = cmp.Or(c.Name, "dynamicworkflow")
	c.MaxConcurrency = cmp.Or(c.MaxConcurrency, min(max(4, o.Min), o.Max))
	switch {
	case o.Min < 1 || o.Step < 1 || c.MaxConcurrency < o.Min || c.MaxConcurrency > o.Max:
		return o, c, fmt.Errorf("dynamicworkflow: Options.Min is %d, MaxConcurrency %d, Max %d and Step %d, but they must be positive, and the first three in this order", o.Min, c.MaxConcurrency, o.Max, o.Step)
	case c.MaxPerKey > 1:
		return o, c, fmt.Errorf("dynamicworkflow: Options.MaxPerKey is %d, but must be 1: a route belongs to the item of an entity that runs", c.MaxPerKey)
	}
	return o, c, nil
}

// New makes a workflow. Key returns the entity of an item: the items of an entity run one at a
// time and in order. Items with the key "" have no entity: they have no order and no route.
// The default of [core.Options.Name] is "dynamicworkflow". MaxPerKey must be 0 or 1.
//
// The sink keeps the workflow in memory until it is drained, stopped or closed.
func New[T any, K ~string](key func(T) K, work core.Work[T], opts Options, coordinator core.Options) (*Workflow[T], error) {
	opts, coordinator, err := opts.resolved(coordinator)
	if err != nil {
		return nil, err
	}
	if work == nil {
		return nil, errors.New("dynamicworkflow: work is nil, but must be a function")
	}
	s := &system{opts: opts, monitors: map[time.Duration][]*signals.Monitor{}}
	c, err := core.NewKeyedCoordinator(key, func(ctx context.Context, item T) error {
		return s.run(ctx, func() error { return work(ctx, item) })
	}, coordinator)
	if err != nil {
		return nil, fmt.Errorf("dynamicworkflow: %w", err)
	}
	s.Control = c.Control
	s.metrics(0)
	s.metrics(max(opts.Interval, 0))
	c.OnClosed(s.Sink().Follow(workUnhealthy+":*,"+workHealthy+":*", s.observe))
	c.OnClosed(s.Sink().Subscribe("system.load.high,system.load.low", func(load signals.Signal) {
		s.do(func() { s.step(load.Name == "system.load.low", load.Name, s.Sink().Because(load)) })
	}))
	c.OnClosed(func() { s.do(s.end) })
	return &Workflow[T]{c, s}, nil
}

// run is the body of an item.
func (s *system) run(ctx context.Context, work func() error) (err error) {
	op := core.OperationFrom(ctx)
	op.Raise(SignalPlaced)
	err = errors.New("dynamicworkflow: work panicked") // unless it returns
	defer func() {
		if err == nil {
			op.Raise(SignalCompleted)
		} else if ctx.Err() == nil || guard.Is(context.Cause(ctx), core.ErrTimeout) {
			Failed.Raise(op, "", err)
		}
		if s.opts.Interval > 0 && s.measuring.CompareAndSwap(false, true) {
			s.do(s.measure)
		}
	}()
	if p := s.opts.Route(ctx, op.Key(), s.healthy); p > 0 && op.Key() != "" {
		Decisions.Named(SignalAssigned+":"+pri(p)).Raise(op, op.Key(), Decision{Priority: p})
		defer op.Hold(routeHeld+strconv.Itoa(p), 0)()
	}
	return work()
}

// do runs an event after the earlier events, on this goroutine or on a goroutine that runs
// events now.
func (s *system) do(event func()) {
	s.events.Add(event)
	s.events.Run()
}

// raise raises a decision on the sink or a view of it.
func (s *system) raise(on signals.Raiser, name, what string, d Decision) {
	Decisions.Named(name+":"+what).Raise(on, s.Name(), d)
}

// Metrics are counts of a span, see [Workflow.Metrics], and the present limit.
type Metrics struct {
	Total       int // items whose work began
	Succeeded   int // items whose work returned nil
	Failed      int // items whose work returned an error or panicked, and was not cancelled
	Failovers   int // how often an item went on to another processor
	Concurrency int // how many items may run at once
}

// Metrics counts the items of the last span; 0 means all since New. The first call with another
// span counts the signals that are in the window of the workflow. After that call, the counts for
// this span are exact, up to 16,384. For [Options.Interval] they are exact from New on. Each span
// costs four monitors, so use few different ones. After the end of the workflow, the counts are 0.
func (w *Workflow[T]) Metrics(span time.Duration) Metrics { return w.system.metrics(span) }

// since returns what was counted after old. Counts are lower than before if an operation has
// retracted its signals, or after the end.
func (m Metrics) since(old Metrics) Metrics {
	more := func(now, before int) int { return max(0, now-before) }
	return Metrics{more(m.Total, old.Total), more(m.Succeeded, old.Succeeded), more(m.Failed, old.Failed), more(m.Failovers, old.Failovers), m.Concurrency}
}

func (s *system) metrics(span time.Duration) Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.monitors[span]
	if m == nil {
		for _, pattern := range []string{SignalPlaced, SignalCompleted, Failed.Name(), failoverRequested + ":*"} {
			monitor := s.Monitor(pattern, span)
			s.OnClosed(monitor.Stop)
			m = append(m, monitor)
		}
		s.monitors[span] = m
	}
	return Metrics{m[0].Count(), m[1].Count(), m[2].Count(), m[3].Count(), s.Stats().Limit}
}

// measure begins an interval.
func (s *system) measure() {
	if !s.ended {
		s.timer = time.AfterFunc(s.opts.Interval, func() { s.do(s.adapt) })
	}
}

// end ends the interval without a decision.
func (s *system) end() {
	if s.ended = true; s.timer != nil {
		s.timer.Stop()
	}
}

// adapt ends an interval: the rule decides.
func (s *system) adapt() {
	if s.ended {
		return
	}
	s.measuring.Store(false)
	// The rule gets the difference of two counts, not a count over a span: when the timer fires,
	// signals from the start of the interval are already older than the span.
	all := s.metrics(0)
	m := all.since(s.measured)
	s.measured = all
	Measured.Raise(s.Sink(), s.Name(), m)
	failures := m.Failovers + m.Failed
	switch attempts := failures + m.Succeeded; {
	case failures*10 > attempts:
		s.step(false, fmt.Sprintf("high failure rate: %.1f%%", 100*float64(failures)/float64(attempts)), s.Sink())
	case failures*50 < attempts && m.Succeeded*10 > m.Concurrency*8:
		s.step(true, fmt.Sprintf("good throughput: %d", m.Succeeded), s.Sink())
	}
}

// step changes the limit by one step, and raises a signal if it has changed.
func (s *system) step(up bool, reason string, on signals.Raiser) {
	from := s.Stats().Limit
	to, name := max(from-s.opts.Step, s.opts.Min), SignalDecreased
	if up {
		to, name = from+min(s.opts.Step, s.opts.Max-from), SignalIncreased
	}
	if to != from && up == (to > from) { // SetMaxConcurrency may have left the range
		s.SetMaxConcurrency(to) // no error: the limit is at least 1
		s.raise(on, name, "to="+strconv.Itoa(to), Decision{From: from, To: to, Reason: reason})
	}
}
