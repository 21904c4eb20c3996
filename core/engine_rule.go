package core

import "time"

// rule is which signals hold up the items of a lane, or of all.
type rule struct {
	cancelOn *condition // nil: none
	deferOn  *condition // nil: none
	maxDefer int64      // < 0: no limit
}

func (e *engine) newRule(cancelOn, deferOn string, maxDefer time.Duration) rule {
	return rule{
		cancelOn: e.ledger.condition(cancelOn, e, false),
		deferOn:  e.ledger.condition(deferOn, e, false),
		maxDefer: int64(maxDefer),
	}
}

func (r *rule) empty() bool { return r.cancelOn == nil && r.deferOn == nil }

func (r *rule) detach() {
	r.cancelOn.detach()
	r.deferOn.detach()
}

// refuses reports whether a signal may keep items of a lane from being accepted
// and started; refusal says for certain.
func (e *engine) refuses(lane uint8) bool {
	return e.rules.cancelOn.holds() || e.lanes[lane].cancelOn.holds()
}

// refusal is the error of an item of a lane that a signal keeps from being
// accepted or started, or nil.
func (e *engine) refusal(lane uint8, now int64) error {
	for _, c := range [...]*condition{e.rules.cancelOn, e.lanes[lane].cancelOn} {
		if v := c.look(now, 0); v.holds {
			return &RefusedError{v.signal}
		}
	}
	return nil
}

// defers reports whether a signal may hold up items of a lane; undeferred says
// for certain.
func (e *engine) defers(lane uint8) bool {
	return e.rules.deferOn.holds() || e.lanes[lane].deferOn.holds()
}

// undeferred returns the operation of the lane of o that is to start although
// DeferOn may hold: o itself if it does not, or first, the earliest of the lane, if
// raised facts alone have deferred that for MaxDefer, which overdue says. If there is none it sets
// the alarm and returns nil. mu is held.
func (e *engine) undeferred(o, first *Operation, now int64) (_ *Operation, overdue bool) {
	resumed := e.resumeOn.look(now, 0).signal.Seq // 0: never
	for _, r := range [...]*rule{&e.rules, &e.lanes[o.lane].rule} {
		v, due := r.deferral(first, now, resumed)
		switch wakeAt := min(v.expires, due); {
		case !v.holds:
			continue
		case due <= now:
			overdue = true
			continue
		case wakeAt != never:
			e.alarm.set(e.clock, wakeAt, e.wake)
		}
		return nil, false
	}
	if overdue {
		return first, true
	}
	return o, false
}

// deferral returns whether DeferOn holds, and until when it can defer o at most, or never.
// Resumed is the Seq of the newest signal that matches ResumeOn.
func (r *rule) deferral(o *Operation, now int64, resumed uint64) (v verdict, due int64) {
	v, due = r.deferOn.look(now, resumed), never
	v.holds = v.holds && v.signal.Seq >= resumed
	if r.maxDefer >= 0 && !v.held {
		due = later(max(o.enqueued, v.since), r.maxDefer)
	}
	return v, due
}

// A GateStatus is the state of a gate: a pattern of CancelOn or DeferOn. The patterns of
// a lane are gates of their own.
type GateStatus struct {
	Kind    ReasonKind `json:"kind"`           // ReasonRefused for CancelOn, ReasonDeferred for DeferOn
	Lane    string     `json:"lane,omitempty"` // the gate refuses or defers only items of this lane; "": all items
	Pattern string     `json:"pattern"`
	Closed  bool       `json:"closed"`          // a matching signal is present and, for DeferOn, no newer one that matches ResumeOn
	Signal  Signal     `json:"signal,omitzero"` // the newest matching signal, if the gate is closed

	// Matches is how many signals have ever matched the pattern: those that were present when
	// the coordinator was made, and all that were raised or held since, also those that have
	// gone. 0 means that the gate has never closed: its pattern may be misspelt. The count
	// ends when the coordinator is drained or closed.
	Matches uint64 `json:"matches"`
}

// Gates returns the coordinator's gates: first those for all items, then those of its
// lanes. An item that has waited for MaxDefer passes a closed gate of DeferOn, unless a
// held signal closes it.
func (c Control) Gates() []GateStatus {
	e := c.made()
	e.lockFresh()
	defer e.mu.Unlock()
	now := e.clock.now()
	resumed := e.resumeOn.look(now, 0).signal.Seq
	var gates []GateStatus
	add := func(kind ReasonKind, lane, pattern string, on *condition, beyond uint64) {
		if on == nil {
			return
		}
		g := GateStatus{Kind: kind, Lane: lane, Pattern: pattern}
		e.sink.mu.Lock()
		g.Matches = on.shared.ever // also of those that operations have raised
		e.sink.mu.Unlock()
		if v := on.look(now, beyond); v.holds && v.signal.Seq >= beyond {
			g.Closed, g.Signal = true, v.signal
		}
		gates = append(gates, g)
	}
	add(ReasonRefused, "", e.opts.CancelOn, e.rules.cancelOn, 0)
	add(ReasonDeferred, "", e.opts.DeferOn, e.rules.deferOn, resumed)
	for i, l := range e.opts.Lanes {
		add(ReasonRefused, l.Name, l.CancelOn, e.lanes[i].cancelOn, 0)
		add(ReasonDeferred, l.Name, l.DeferOn, e.lanes[i].deferOn, resumed)
	}
	return gates
}
