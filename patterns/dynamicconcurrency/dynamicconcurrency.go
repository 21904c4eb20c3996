package dynamicconcurrency

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// Signals that say that the limit has changed. They are raised on the sink, with the name
// of the coordinator as key, because of the signal that changed it.
const (
	SignalIncreased = "concurrency.increased"
	SignalDecreased = "concurrency.decreased"
)

// The kinds of these signals. The payload is the limit from then on.
var (
	Increased = core.NewKind[int](SignalIncreased)
	Decreased = core.NewKind[int](SignalDecreased)
)

// Scale says between which limits a coordinator moves, and because of what. The zero value
// is the default. Patterns are as described at [core.Match].
type Scale struct {
	// Min and Max are the lowest and the highest limit; 0 means 1 and 32.
	Min, Max int
	// UpOn matches the signals that double the limit, and DownOn those that halve it; ""
	// means "load.high" and "load.low". A signal that matches both doubles it.
	UpOn, DownOn string
}

func (s Scale) resolved() (Scale, error) {
	s.Min, s.Max = cmp.Or(s.Min, 1), cmp.Or(s.Max, 32)
	s.UpOn, s.DownOn = cmp.Or(s.UpOn, "load.high"), cmp.Or(s.DownOn, "load.low")
	if s.Min < 1 || s.Max < s.Min {
		return s, fmt.Errorf("dynamicconcurrency: Scale.Min is %d and Scale.Max is %d, but they must be positive, and Max not less than Min", s.Min, s.Max)
	}
	return s, nil
}

// step returns the limit after one step.
func (s Scale) step(limit int, up bool) int {
	if up {
		return limit + min(limit, s.Max-limit)
	}
	return min(max(limit/2, s.Min), s.Max)
}

// New makes a coordinator whose limit each signal on opts.Sink that matches UpOn or DownOn
// changes by one step, from when it is raised. Opts.Sink must be set. The first limit is
// [core.Options.MaxConcurrency], by default Scale.Min. A limit that SetMaxConcurrency sets
// is where the next step begins. The default of Name is "dynamicconcurrency".
//
// A step is taken on the goroutine that raises the signal, before its Raise returns. When
// several goroutines raise signals at the same time, one of them takes the steps of all,
// one after the other. The sink keeps the coordinator alive until it is drained, stopped
// or closed, and then has no trace of it.
func New[T any](work core.Work[T], scale Scale, opts core.Options) (*core.Coordinator[T], error) {
	scale, err := scale.resolved()
	opts.MaxConcurrency = cmp.Or(opts.MaxConcurrency, scale.Min)
	switch {
	case err != nil:
		return nil, err
	case opts.Sink == nil:
		return nil, errors.New("dynamicconcurrency: Options.Sink is nil, but must be the sink on which signals change the limit")
	case opts.MaxConcurrency < scale.Min || opts.MaxConcurrency > scale.Max:
		return nil, fmt.Errorf("dynamicconcurrency: Options.MaxConcurrency is %d, but must be from %d to %d, as the scale says", opts.MaxConcurrency, scale.Min, scale.Max)
	}
	opts.Name = cmp.Or(opts.Name, "dynamicconcurrency")
	c, err := core.NewCoordinator(work, opts)
	if err != nil {
		return nil, fmt.Errorf("dynamicconcurrency: %w", err)
	}
	var steps outbox.Outbox
	c.OnClosed(opts.Sink.Subscribe(scale.UpOn+","+scale.DownOn, func(s core.Signal) {
		steps.Add(func() { take(c.Control, scale, s) })
		steps.Run()
	}))
	return c, nil
}

// take takes the step that a signal asks for.
func take(c core.Control, scale Scale, s core.Signal) {
	limit := c.Stats().Limit
	to := scale.step(limit, core.Match(scale.UpOn, s.Name))
	if to == limit {
		return
	}
	c.SetMaxConcurrency(to) // which is at least 1
	say := Increased
	if to < limit {
		say = Decreased
	}
	say.Raise(c.Sink().Because(s), c.Name(), to)
}
