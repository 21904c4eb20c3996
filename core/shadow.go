// This file decides what limits that only count are, and what they show.

package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// Limits are what a shadow has: a limit and rates that only count, to see what they would do before they are in force.
// A class can have a shadow ([Class].Shadow), and so can all operations together ([Options].Shadow).
//
// The shadow is a virtual queue: an item comes to it when it really starts, first come first served, and stays as long
// as its body really runs. So a shadow says how much later items would start; it says nothing about how bodies would
// react to that. An operation that goes on after a Suspend does not wait again.
//
// A shadow must not be looser than what is in force. With looser limits, items would start before they really do, and
// nobody knows yet how long they run. A shadow has at least one field; a zero field means: as in force. If what is in force becomes stricter than the shadow later, by
// SetMaxConcurrency or a trial, the shadow counts what it adds to that.
type Limits struct {
	Limit    int  `json:"limit,omitzero"`
	Rate     Rate `json:"rate,omitzero"`
	CostRate Rate `json:"costRate,omitzero"`
}

// ShadowStats are the counters of a shadow since it was set; without a shadow they are zero. See [Limits].
// Waiting <= Waited, and Waited + Refused <= Started.
type ShadowStats struct {
	Limits  Limits `json:"limits,omitzero"` // of the shadow
	Started uint64 `json:"started"`         // items that have really started
	Waited  uint64 `json:"waited"`          // of these, would have started later
	Refused uint64 `json:"refused"`         // of these, would have found no room, as the queues have only Depth or MaxQueued places
	Waiting int    `json:"waiting"`         // would still wait

	Longest time.Duration `json:"longest"` // how much later one of Waited would have started; those that would still wait do not count yet
}

// stricter returns a copy with defaults, or an error if s is not valid or looser than what is in force.
func (s *Limits) stricter(what string, force Limits) (*Limits, error) {
	if s == nil {
		return nil, nil
	}
	what += ": Shadow"
	var errs [5]error
	made := Limits{Limit: s.Limit}
	made.Rate, errs[0] = rateOf(s.Rate, what+".Rate")
	made.CostRate, errs[1] = rateOf(s.CostRate, what+".CostRate")
	switch {
	case made == Limits{}:
		errs[2] = fmt.Errorf("core: %s is empty, but must have a limit or a rate", what)
	case s.Limit < 0:
		errs[2] = fmt.Errorf("core: %s.Limit is %d, but must not be negative", what, s.Limit)
	case force.Limit > 0 && s.Limit > force.Limit:
		errs[2] = fmt.Errorf("core: %s.Limit is %d, but must not be looser than the limit in force, which is %d", what, s.Limit, force.Limit)
	}
	errs[3] = notLooser(what+".Rate", made.Rate, force.Rate)
	errs[4] = notLooser(what+".CostRate", made.CostRate, force.CostRate)
	return &made, errors.Join(errs[:]...)
}

func notLooser(what string, shadow, force Rate) error {
	if force == (Rate{}) || shadow.PerSecond <= force.PerSecond && shadow.Burst <= force.Burst {
		return nil
	}
	return fmt.Errorf("core: %s is %v a second with a burst of %d, but must not be looser than the rate in force, which is %v with %d", what, shadow.PerSecond, shadow.Burst, force.PerSecond, force.Burst)
}

func (s *Limits) same(as *Limits) bool { return s == as || s != nil && as != nil && *s == *as }

// SetShadow changes the shadow of all operations, as [Options].Shadow; nil removes it. A shadow with the same limits goes
// on, and another one begins to count from zero, with the operations that run now. If SetShadow returns an error, it has
// changed nothing. For the shadow of a class, see [Control.SetClass].
func (c Control) SetShadow(shadow *Limits) error {
	e := c.made()
	e.mu.Lock()
	defer e.unlock()
	made, err := shadow.stricter("SetShadow", Limits{Limit: e.slots.Limit})
	if err != nil {
		return err
	}
	if !made.same(e.classes[0].Shadow) {
		e.setShadow(0, made)
	}
	e.classes[0].Shadow = made
	return nil
}

// setShadow sets the shadow of a class, or of all operations if the class is 0; nil removes it. mu is held.
func (e *engine) setShadow(class uint8, limits *Limits) {
	var to sched.Shadow
	if limits != nil {
		to.Limits = sched.Limits{Limit: limits.Limit, Rate: limits.Rate, CostRate: limits.CostRate}
		for i := range e.intake.rooms {
			if class == 0 || i%e.intake.classes == int(class) {
				to.Room = int(min(uint64(to.Room)+e.intake.rooms[i].Limit, 1<<30))
			}
		}
	}
	if e.scheduler.SetShadow(class, to, &e.slots.Running, e.clock.Now()) {
		e.tellShadow(class, 0)
	}
}

// tellShadows makes signals say in which shadows items begin to wait, and in which none does any more. mu is held.
func (e *engine) tellShadows() {
	now, again := e.clock.Now(), int64(clock.Never)
	for class := range e.classes {
		waiting, news, next := e.scheduler.TellShadow(uint8(class), now)
		if news {
			e.tellShadow(uint8(class), waiting)
		}
		again = min(again, next)
	}
	if again != clock.Never && !e.finalized {
		e.shadowAlarm.Set(e.clock, again, e.lookAtShadows)
	}
}

func (e *engine) tellShadow(class uint8, waiting int) {
	e.out.classes = append(e.out.classes, classTold{WouldThrottle, ClassChange{Coordinator: e.name, Class: e.classes[class].Name, Waiting: waiting}})
}

// lookAtShadows is called by the alarm.
func (e *engine) lookAtShadows() {
	e.mu.Lock()
	e.shadowAlarm.Armed = false
	e.tellShadows()
	e.unlock()
}

// shadowTime is the time if a shadow counts o, and else 0. mu is held.
func (e *engine) shadowTime(o *Operation) int64 {
	if e.scheduler.Shadowed(&o.sched) {
		return e.clock.Now()
	}
	return 0
}

// shadowStats are the counters of the shadow of a class, or of all operations if the class is 0. mu is held.
func (e *engine) shadowStats(class uint8, limits *Limits, now int64) ShadowStats {
	use, ok := e.scheduler.Shadow(class, now)
	if !ok {
		return ShadowStats{}
	}
	return ShadowStats{
		Limits: *limits, Started: use.Items, Waited: use.Waited, Refused: use.Refused, Waiting: use.Waiting, Longest: time.Duration(use.Longest),
	}
}
