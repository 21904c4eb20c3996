package dynamicconcurrency

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of changes of the limit, with the new limit as payload. They are raised on the sink.
// Their key is the name of the coordinator, and their cause is the signal that changed the limit.
var (
	Increased = signals.NewKind[int]("limit.increased")
	Decreased = signals.NewKind[int]("limit.decreased")
)

// Scale has the lowest and the highest limit, and the signals that change the limit. The zero
// value is the default. For patterns, see [signals.Match].
type Scale struct {
	// Min and Max are the lowest and the highest limit. 0 means 1 for Min and 32 for Max.
	Min, Max int
	// UpOn matches the signals that double the limit; "" means "load.high". DownOn matches
	// the signals that halve it; "" means "load.low". A signal that matches both doubles
	// the limit.
	//
	//ephemeral:pattern
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

// New makes a coordinator. From then on, each signal on opts.Sink that matches UpOn or DownOn
// changes its limit by one step. Opts.Sink must be set. The first limit is
// [core.Options.MaxConcurrency], by default Scale.Min. If SetMaxConcurrency changes the limit,
// the next step begins there. The default of Name is "dynamicconcurrency".
//
// The goroutine that raises the signal takes the step, before Raise returns. If several
// goroutines raise signals at the same time, one of them takes all steps, one after the other.
// The sink keeps the coordinator in memory until it is drained, stopped or closed.
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
	c.OnClosed(opts.Sink.Subscribe(scale.UpOn+","+scale.DownOn, func(s signals.Signal) {
		steps.Add(func() { take(c.Control, scale, s) })
		steps.Run()
	}))
	return c, nil
}

// take takes the step that a signal asks for.
func take(c core.Control, scale Scale, s signals.Signal) {
	limit := c.Stats().Limit
	to := scale.step(limit, signals.Match(scale.UpOn, s.Name))
	if to == limit {
		return
	}
	c.SetMaxConcurrency(to) // no error: the limit is at least 1
	say := Increased
	if to < limit {
		say = Decreased
	}
	say.Raise(c.Sink().Because(s), c.Name(), to)
}
