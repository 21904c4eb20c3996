// This file decides whether a gate holds up an item, and until when.

package core

import (
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// verdict is the state of a gate at one moment.
type verdict struct {
	holds   bool
	signal  signals.Signal // the newest
	held    bool           // a held signal matches
	since   int64          // if held is false: since when the gate is shut
	expires int64          // the next time at which the state may change without a new event; the constant never if there is none
}

// look returns the state of a gate, which may be nil. Fields held and since count only signals
// newer than beyond.
func look(g *signals.Gate, now int64, beyond uint64) (v verdict) {
	if g.Shut() {
		v.holds, v.signal, v.held, v.since, v.expires = g.Engine().Look(now, beyond)
	}
	return v
}

// rule says which signals hold up the items of a lane or class, or all items.
type rule struct {
	cancelOn *signals.Gate // nil: none
	deferOn  *signals.Gate // nil: none
	maxDefer int64         // < 0: no limit
}

func (r *rule) empty() bool { return r.cancelOn == nil && r.deferOn == nil }

func (r *rule) detach() {
	r.cancelOn.Stop()
	r.deferOn.Stop()
}

// deferral returns what DeferOn says now. Resumed is the Seq of the newest signal that matches ResumeOn.
func (r *rule) deferral(now int64, resumed uint64) sched.Deferral {
	v := look(r.deferOn, now, resumed)
	return sched.Deferral{Holds: v.holds && v.signal.Seq >= resumed, Held: v.held, Since: v.since, Expires: v.expires, Most: r.maxDefer}
}
