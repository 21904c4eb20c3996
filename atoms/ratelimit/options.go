package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Limiter], a [Group] or a [Keyed]. The zero value is the default.
type Options struct {
	// Name is the key of the signals of the limiter, and of commands for this limiter
	// only. "" means "ratelimit". A Group uses it for [SignalLimited] and
	// [SignalRecovered]; its other signals and its commands have the name of a limit.
	//
	//ephemeral:none
	Name string
	// MaxQueued is how many requests may be in the queue, waiters and reservations. Each
	// further request is refused. 0 means 10,000. Negative means no queue: a request that
	// cannot pass at once is refused. It must not be more than 2^20. All queues of a Keyed
	// together have this limit.
	MaxQueued int
	// IgnoreCommands makes the limiter ignore commands on the sink.
	IgnoreCommands bool
	// Sink gets the signals of the limiter, and may bring commands. nil means a new sink.
	Sink *signals.Sink
	// Capacity is how many keys a Keyed remembers. 0 means 65,536. It must not be negative
	// or more than 2^30. If it is 8192 or more, the keys are divided among up to 64 shards,
	// and each shard has its share of Capacity, rounded up. A Limiter and a Group do not
	// use it.
	Capacity int
}

// resolved returns the rate and the options with the defaults filled in.
func (o Options) resolved(rate core.Rate) (core.Rate, Options, error) {
	o.Name = cmp.Or(o.Name, "ratelimit")
	o.MaxQueued, o.Capacity = max(0, cmp.Or(o.MaxQueued, 10_000)), cmp.Or(o.Capacity, 1<<16)
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	rate, err := checkRate(rate)
	err = errors.Join(err, checkName(o.Name),
		checkRange("MaxQueued", o.MaxQueued, 0, 1<<20), checkRange("Capacity", o.Capacity, 1, 1<<30))
	return rate, o, err
}

// checkRate returns a rate with the default burst, or an error.
func checkRate(rate core.Rate) (core.Rate, error) {
	rate, err := rate.Resolved()
	switch {
	case err != nil && math.IsInf(rate.PerSecond, 1):
		err = fmt.Errorf("ratelimit: %w; ratelimit.Unlimited lets all requests pass", err)
	case err != nil:
		err = fmt.Errorf("ratelimit: %w", err)
	}
	return rate, err
}

func checkRange(field string, v, least, most int) error {
	if v < least || v > most {
		return fmt.Errorf("ratelimit: %s must be at least %d and at most %d, not %d", field, least, most, v)
	}
	return nil
}

func checkName(name string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("ratelimit: Name is %q, it must not be blank", name)
	}
	return nil
}
