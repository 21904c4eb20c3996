package aggregate

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure an [Aggregator]. The zero value is the default.
type Options struct {
	// Capacity is how many facts are kept; 0 means 16384. When there are more
	// within the span, the oldest go, and answers cover less.
	Capacity int
}

const defaultCapacity = core.MonitorCap

// An Aggregator keeps the facts of a kind that are younger than its span, and
// computes from them; a fact counts when its raise returns. Make one with [New]. All methods are safe for concurrent use;
// no lock is held while a function that they are given runs.
//
// It costs each raise of the kind about as much as appending to a slice, and as much
// memory as there are facts within the span, up to its capacity, with their
// payloads. It owns no goroutine, and is kept by its sink until Stop.
type Aggregator[P any] struct {
	kind core.Kind[P]
	span time.Duration
	stop func()

	mu     sync.Mutex
	record record
}

// New makes an aggregator of the facts of a kind that are raised on a sink from now
// on.
func New[P any](sink *core.Sink, kind core.Kind[P], span time.Duration, opts Options) (*Aggregator[P], error) {
	var errs []error
	if sink == nil {
		errs = append(errs, errors.New("aggregate: the sink is nil, but facts are signals of a sink"))
	}
	if kind.Name() == "" {
		errs = append(errs, errors.New("aggregate: the kind is the zero Kind; make one with core.NewKind"))
	}
	if span <= 0 {
		errs = append(errs, fmt.Errorf("aggregate: the span is %v, but must be positive", span))
	}
	if opts.Capacity < 0 {
		errs = append(errs, fmt.Errorf("aggregate: Options.Capacity is %d, but must not be negative", opts.Capacity))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if opts.Capacity == 0 {
		opts.Capacity = defaultCapacity
	}
	a := &Aggregator[P]{kind: kind, span: span, record: record{span: span, capacity: opts.Capacity}}
	// Retractions first, so that none of a fact that is heard of is missed.
	cancelRetracted := sink.SubscribeRetracted(kind.Name(), func(r core.Retraction) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.record.takeBack(r.Signal.Seq)
	})
	cancelRaised := kind.Subscribe(sink, func(s core.Signal, _ P) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.record.add(s, time.Now())
	})
	a.stop = sync.OnceFunc(func() {
		cancelRaised()
		cancelRetracted()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.begin(time.Now())
	return a, nil
}

// Summarize computes from all facts within the span, value saying by which number
// each enters; it leaves out those of which that is not a number. It takes
// O(n log n).
func (a *Aggregator[P]) Summarize(value func(P) float64) Summary {
	if value == nil {
		panic("aggregate: Summarize needs a function")
	}
	facts, covered := a.facts()
	var values []float64
	for _, s := range facts {
		if p, ok := a.kind.From(s); ok {
			values = append(values, value(p))
		}
	}
	return a.summary(values, covered)
}

// GroupBy is [Aggregator.Summarize] for each group of facts, group saying which a
// fact belongs to. Groups that nothing enters are left out.
func GroupBy[P any, K comparable](a *Aggregator[P], group func(core.Signal, P) K, value func(P) float64) map[K]Summary {
	if group == nil || value == nil {
		panic("aggregate: GroupBy needs two functions")
	}
	facts, covered := a.facts()
	values := make(map[K][]float64)
	for _, s := range facts {
		if p, ok := a.kind.From(s); ok {
			k := group(s, p)
			values[k] = append(values[k], value(p))
		}
	}
	groups := make(map[K]Summary)
	for k, v := range values {
		if s := a.summary(v, covered); s.Count > 0 {
			groups[k] = s
		}
	}
	return groups
}

// All walks the facts within the span, oldest first, as of the start of the loop.
func (a *Aggregator[P]) All() iter.Seq2[core.Signal, P] {
	return func(yield func(core.Signal, P) bool) {
		facts, _ := a.facts()
		for _, s := range facts {
			if p, ok := a.kind.From(s); ok && !yield(s, p) {
				return
			}
		}
	}
}

// Covered is how far back answers reach: the span, or less if facts from within it
// may be missing.
func (a *Aggregator[P]) Covered() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.record.covered(time.Now())
}

// Stop ends the keeping of facts and forgets them; answers cover nothing from then
// on. It may be called many times.
func (a *Aggregator[P]) Stop() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.end()
}

// facts copies the facts within the span.
func (a *Aggregator[P]) facts() (facts []core.Signal, covered time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.record.expire(now)
	return slices.Clone(a.record.facts), a.record.covered(now)
}

func (a *Aggregator[P]) summary(values []float64, covered time.Duration) Summary {
	s := summarize(values)
	s.Covered, s.Complete = covered, covered == a.span
	return s
}
