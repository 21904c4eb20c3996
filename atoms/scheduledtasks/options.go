package scheduledtasks

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// RunOnce is a value for [Options.Missed]: a schedule runs once for all its missed ticks.
const RunOnce = 1

// Options configure a [Scheduler]. The zero value is the default.
type Options struct {
	// Name is the name of this scheduler, for people; "" means "scheduledtasks".
	Name string
	// Sink is where the scheduler raises its signals; nil means a new sink.
	Sink *signals.Sink

	// Store remembers the last tick of each schedule. Ticks in a time without a process are
	// then missed ticks. nil means that such ticks are not noticed.
	Store Store
	// Missed is how many ticks of a schedule are run after some were missed: the newest ones.
	// See "Missed ticks" in the package documentation. 0 and negative mean none, [RunOnce]
	// one; the maximum is 1000.
	Missed int
	// SkipOverlap skips a tick while the last task of its schedule is pending or runs in the target, even if the schedule was removed and added
	// again meanwhile. A skipped tick is not marked in the store. Only tasks of this scheduler count. The target needs a method Lookup, as a
	// coordinator has. Otherwise New returns an error: a [TargetFunc] has no Lookup.
	SkipOverlap bool
	// Jitter spreads schedules that are due at the same time. It delays each schedule by a
	// fixed time, less than Jitter, that depends on the schedule's name only. 0 and negative
	// mean no delay.
	Jitter time.Duration

	// Timeout is how long the hand-over of one task may take. It includes the wait for room
	// in the target, and the mark in the store. 0 means 10 seconds, negative no limit.
	Timeout time.Duration
}

// resolved returns the options with defaults in place of zeroes, or an error.
func (o Options) resolved(target Target) (Options, error) {
	_, tracks := target.(tracker)
	switch {
	case core.IsNil(target):
		return o, errors.New("scheduledtasks: there must be a target, not nil")
	case o.Missed > 1000:
		return o, fmt.Errorf("scheduledtasks: Options.Missed is %d, but may be 1000 at most", o.Missed)
	case o.SkipOverlap && !tracks:
		return o, fmt.Errorf("scheduledtasks: Options.SkipOverlap needs a target with a method Lookup, which a %T does not have", target)
	}
	o.Name = cmp.Or(o.Name, "scheduledtasks")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o, nil
}

// tracker is a target that knows the state of its tasks.
type tracker interface {
	Lookup(id core.OperationID) (core.Snapshot, bool)
}
