package aggregate

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure an [Aggregator]. The zero value is the default.
type Options struct {
	// Capacity is how many facts are kept; 0 means 16384. When there are more
	// within the span, the oldest go, and answers cover less.
	Capacity int
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	o.Capacity = cmp.Or(o.Capacity, signals.MonitorCap)
	return o, check.NotNegative("aggregate: Options.Capacity", o.Capacity)
}

// An Aggregator keeps the facts of a kind that are younger than its span, and
// computes from them. A fact counts when its raise returns. Make one with [New]. All
// methods are safe for concurrent use. No lock is held while functions of the caller run.
//
// It costs each raise of the kind about as much as an append to a slice. It keeps the
// facts within the span, up to its capacity, with their payloads. It owns no goroutine.
// Its sink keeps it alive until Stop.
type Aggregator[P any] struct {
	kind signals.Kind[P]
	span time.Duration
	stop func()

	mu     sync.Mutex
	record record
}

// New makes an aggregator of the facts of a kind that are raised on a sink from now
// on.
//
//ephemeral:pattern {kind}
func New[P any](sink *signals.Sink, kind signals.Kind[P], span time.Duration, opts Options) (*Aggregator[P], error) {
	opts, err := opts.resolved()
	err = errors.Join(
		check.Error(sink == nil, "aggregate: the sink is nil, but facts are signals of a sink"),
		check.Error(kind.Name() == "", "aggregate: the kind is the zero Kind; make one with signals.NewKind"),
		check.Error(span <= 0, "aggregate: the span is %v, but must be positive", span),
		err,
	)
	if err != nil {
		return nil, err
	}
	a := &Aggregator[P]{kind: kind, span: span, record: record{span: span, capacity: opts.Capacity}}
	// Subscribe to retractions first, so that no retraction of a kept fact is missed.
	cancelRetracted := sink.SubscribeRetracted(kind.Name(), func(r signals.Retraction) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.record.takeBack(r.Signal.Seq)
	})
	cancelRaised := kind.Subscribe(sink, func(s signals.Signal, _ P) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.record.add(s, time.Now())
	})
	a.stop = func() { cancelRaised(); cancelRetracted() }
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.begin(time.Now())
	return a, nil
}

// Summarize computes from all facts within the span. Value returns the number of a fact;
// facts whose value is NaN are left out. It takes O(n log n) time.
func (a *Aggregator[P]) Summarize(value func(P) float64) Summary {
	check.Panic(value == nil, "aggregate: Summarize needs a function")
	facts, covered := a.facts()
	var values []float64
	for _, p := range facts {
		values = append(values, value(p))
	}
	return a.summary(values, covered)
}

// GroupBy is [Aggregator.Summarize] for each group of facts. Group returns the group of
// a fact. Groups without a number are left out.
func GroupBy[P any, K comparable](a *Aggregator[P], group func(signals.Signal, P) K, value func(P) float64) map[K]Summary {
	check.Panic(group == nil || value == nil, "aggregate: GroupBy needs two functions")
	facts, covered := a.facts()
	values := make(map[K][]float64)
	for s, p := range facts {
		k := group(s, p)
		values[k] = append(values[k], value(p))
	}
	groups := make(map[K]Summary)
	for k, v := range values {
		if s := a.summary(v, covered); s.Count > 0 {
			groups[k] = s
		}
	}
	return groups
}

// Stop forgets all facts and keeps no new ones. From then on, answers cover nothing. It may
// be called many times.
func (a *Aggregator[P]) Stop() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.end()
}

// facts yields a copy of the facts within the span.
func (a *Aggregator[P]) facts() (facts iter.Seq2[signals.Signal, P], covered time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.record.expire(now)
	list := slices.Clone(a.record.facts)
	return func(yield func(signals.Signal, P) bool) {
		for _, s := range list {
			if p, _ := a.kind.From(s); !yield(s, p) { // all signals are of the kind
				return
			}
		}
	}, a.record.covered(now)
}

func (a *Aggregator[P]) summary(values []float64, covered time.Duration) Summary {
	s := summarize(values)
	s.Covered, s.Complete = covered, covered == a.span
	return s
}
