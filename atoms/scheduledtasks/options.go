package scheduledtasks

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// RunOnce is the value of [Options.Missed] that runs a schedule once for all missed ticks.
const RunOnce = 1

// Options configure a [Scheduler]. The zero value is the default.
type Options struct {
	// Name tells schedulers apart; "" means "scheduledtasks".
	Name string
	// Sink is where the scheduler raises its signals; nil means one of its own.
	Sink *core.Sink

	// Store remembers the last tick of each schedule, so that ticks that come while no
	// process runs are missed ticks afterwards. nil means that they are not noticed.
	Store Store
	// Missed is how many ticks of a schedule are run if it turns out that some were
	// missed, the newest: see the package documentation. 0 and negative mean none,
	// [RunOnce] one. It may be 1000 at most.
	Missed int
	// SkipOverlap skips a tick while the last task of the schedule that was handed over
	// is pending or runs. It requires a target with a method Lookup, such as a
	// coordinator, and knows the tasks of this scheduler only. A skipped tick is not marked
	// in the store.
	SkipOverlap bool
	// Jitter spreads schedules that are due at the same time: each runs somewhat after
	// its ticks, by less than Jitter. How much depends on its name only, so the time
	// between its ticks does not change. 0 and negative mean none.
	Jitter time.Duration

	// Timeout is how long it may take to hand a task over, to wait for room in the target
	// included, and to mark its tick; 0 means 10 seconds, negative no limit. The schedule
	// waits meanwhile, and others do not.
	Timeout time.Duration
}

// resolved returns the options with defaults in place of zeroes, or says what is wrong.
func (o Options) resolved(target Target) (Options, error) {
	_, tracks := target.(tracker)
	switch {
	case target == nil:
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

// tracker is a target that knows what became of tasks.
type tracker interface {
	Lookup(id core.OperationID) (core.Snapshot, bool)
}
