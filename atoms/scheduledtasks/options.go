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

// An Overlap says what happens to a tick while the last task of its schedule is pending or runs in
// the target. "" is [AllowOverlap].
type Overlap string

const (
	AllowOverlap Overlap = "allow" // the tick is handed over
	// SkipOverlap skips the tick, even if the schedule was removed and added again meanwhile. A skipped
	// tick is not marked in the store. Only tasks of this scheduler count. The target needs a method
	// Lookup, as a coordinator has. A [TargetFunc] has none: it skips a tick itself, if it
	// returns [ErrOverlap].
	SkipOverlap Overlap = "skip"
)

func (o Overlap) valid() bool { return o == "" || o == AllowOverlap || o == SkipOverlap }

// check returns an error if the target cannot do what o says. The text of where stands before it.
func (o Overlap) check(target Target, where string) error {
	if _, tracks := target.(tracker); o == SkipOverlap && !tracks {
		return fmt.Errorf("scheduledtasks: %sOverlap is %q, but that needs a target with a method Lookup, which a %T does not have", where, o, target)
	}
	return nil
}

// maxMissed is the largest value of Missed.
const maxMissed = 1000

// Options configure a [Scheduler]. The zero value is the default. A [Definition] can have its own
// Missed, Overlap, Jitter and Timeout.
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
	// Overlap says what happens to a tick while the last task of its schedule is not finished. ""
	// means [AllowOverlap].
	Overlap Overlap
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
	switch {
	case core.IsNil(target):
		return o, errors.New("scheduledtasks: there must be a target, not nil")
	case o.Missed > maxMissed:
		return o, fmt.Errorf("scheduledtasks: Options.Missed is %d, but may be %d at most", o.Missed, maxMissed)
	case !o.Overlap.valid():
		return o, fmt.Errorf("scheduledtasks: Options.Overlap is %.99q, but must be %q or %q", o.Overlap, AllowOverlap, SkipOverlap)
	}
	o.Name = cmp.Or(o.Name, "scheduledtasks")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o, o.Overlap.check(target, "")
}

// tracker is a target that knows the state of its tasks.
type tracker interface {
	Lookup(id core.OperationID) (core.Snapshot, bool)
}
