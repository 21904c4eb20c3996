// This file decides why an operation waits.

package core

import (
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Explain says why an operation waits. If it waits for another operation, Explain also
// says why that one waits, and so on, across coordinators. It returns false if the id is
// not in the window.
func (c Control) Explain(id OperationID) (Explanation, bool) {
	e := c.made()
	o := e.find(id)
	if o == nil {
		return Explanation{}, false
	}
	var x explainer
	queue := []*Operation{o}
	for i := 0; i < len(queue) && i < maxExplained; i++ {
		x.holders = nil
		x.explain(queue[i])
		for _, holder := range x.holders {
			if !slices.Contains(queue, holder) {
				queue = append(queue, holder)
			}
		}
	}
	return x.Explanation, true
}

// explainer collects the reasons of an explanation.
type explainer struct {
	Explanation
	holders []*Operation // the operations that an operation waits for
}

// add adds a reason of o. If holder is not nil, it is the operation that o waits for.
func (x *explainer) add(o *Operation, r Reason, holder *Operation) {
	r.Operation = o.owner.ID
	if holder != nil {
		r.Holder = holder.owner.ID
		x.holders = append(x.holders, holder)
	}
	x.Reasons = append(x.Reasons, r)
}

// explain adds why one operation waits.
func (x *explainer) explain(o *Operation) {
	e := o.engine
	e.lockFresh()
	now := e.clock.Now()
	status := o.status()
	if x.Operation == 0 {
		x.Operation, x.Status, x.Time = o.owner.ID, status, e.clock.Wall(now)
	}
	if status == StatusPending {
		x.pending(o, now)
	} else if d := o.rare.Load(); status == StatusSuspended && d.ready != nil {
		x.add(o, Reason{Kind: ReasonResuming}, nil)
		x.slots(o)
	} else if status == StatusRunning {
		x.shadows(o, now)
	}
	b := e.stuck.bodies[o.owner.ID]
	e.mu.Unlock()
	if b.stuck {
		x.add(o, Reason{Kind: ReasonStuck, What: b.why(), Since: e.clock.Wall(b.stuckSince)}, nil)
	}
	if status&(StatusRunning|StatusSuspended) != 0 {
		x.body(o)
	}
}

// pending adds why a pending operation waits. mu of its engine is held.
func (x *explainer) pending(o *Operation, now int64) {
	e := o.engine
	if e.slots.Paused {
		x.add(o, Reason{Kind: ReasonPaused}, nil)
	}
	x.slots(o)
	if lent := e.slots.Lent - e.slots.MaxSuspended; lent > 0 && e.slots.Free() && e.slots.Full() {
		x.add(o, Reason{Kind: ReasonSuspended, Ahead: e.slots.Lent, Limit: e.slots.MaxSuspended}, nil)
	}
	if key := o.sched.Key(); key != "" {
		x.taken(o, Reason{Kind: ReasonKey, Key: key}, e.opts.MaxPerKey, e.started(), func(other *Operation) bool { return other.sched.Key() == key })
	}

	x.rates(o, now)
	resumed := look(e.resumeOn, now, 0).signal.Seq
	for _, r := range e.rulesOf(o.sched.Lane, o.sched.Class) {
		for s, until := range r.cancelOn.Engine().Standing(now, maxExplained) {
			x.add(o, e.heldUp(ReasonRefused, s, until), nil)
		}
		d := r.deferral(now, resumed)
		forced := d.Until(&o.sched)
		if !d.Holds || forced <= now {
			continue
		}
		for s, until := range r.deferOn.Engine().Standing(now, maxExplained) {
			if s.Seq >= resumed {
				reason := e.heldUp(ReasonDeferred, s, until)
				reason.Forced = e.clock.Wall(forced)
				x.add(o, reason, nil)
			}
		}
	}

	r := Reason{Kind: ReasonPriority, Lane: e.lanes[o.sched.Lane].Name}
	e.intake.mu.Lock()
	for lane := range o.sched.Lane {
		for class := range e.classes {
			r.Ahead += e.pendingIn(int(lane), class)
		}
	}
	e.intake.mu.Unlock()
	x.behind(o, r, operationOf(e.scheduler.FirstAbove(o.sched.Lane)))
	ahead, first, ofKey := e.scheduler.Ahead(&o.sched)
	if r = (Reason{Kind: ReasonOrder, Ahead: ahead}); ofKey {
		r.Key = o.sched.Key()
	}
	x.behind(o, r, operationOf(first))
}

// behind adds that others go first, if there are any. First is one of them, or nil. Its own reasons do not follow.
func (x *explainer) behind(o *Operation, r Reason, first *Operation) {
	if r.Ahead == 0 {
		return
	}
	if first != nil {
		r.Holder = first.owner.ID
	}
	x.add(o, r, nil)
}

// rates adds when there are tokens for o. mu of its engine is held.
func (x *explainer) rates(o *Operation, now int64) {
	e := o.engine
	class := &e.classes[o.sched.Class]
	at, cost := e.scheduler.Lacks(&o.sched, now)
	for i, r := range []Reason{{Class: class.Name, What: "Rate"}, {Key: o.sched.Key(), What: "KeyRate"}} {
		if at[i] == 0 {
			continue
		}
		if cost[i] {
			r.What = strings.Replace(r.What, "Rate", "CostRate", 1)
		}
		r.Kind, r.Expires = ReasonRate, e.clock.Wall(at[i])
		x.add(o, r, nil)
	}
	for s, until := range class.trialOn.Engine().Standing(now, maxExplained) {
		x.add(o, Reason{Kind: ReasonTrial, Class: class.Name, Limit: class.Trials, Signal: s, Since: s.Time, Expires: e.clock.Wall(until)}, nil)
	}
}

// shadows adds which shadows would keep o waiting. mu of its engine is held.
func (x *explainer) shadows(o *Operation, now int64) {
	e := o.engine
	due := e.scheduler.ShadowDue(&o.sched, now)
	for i, class := range []uint8{o.sched.Class, 0} {
		at := due[i]
		if at == 0 {
			continue
		}
		r := Reason{Kind: ReasonShadow, Class: e.classes[class].Name}
		if at > now {
			r.Expires = e.clock.Wall(at)
		}
		x.add(o, r, nil)
	}
}

// slots adds why there is no slot for o. mu of its engine is held.
func (x *explainer) slots(o *Operation) {
	e := o.engine
	running := operationsOf(e.slots.Running.AppendTo(nil))
	lane, class := &e.lanes[o.sched.Lane], &e.classes[o.sched.Class]
	x.taken(o, Reason{Kind: ReasonLimit}, e.slots.Limit, running, func(*Operation) bool { return true })
	x.taken(o, Reason{Kind: ReasonLane, Lane: lane.Name}, lane.Limit, running, func(other *Operation) bool { return other.sched.Lane == o.sched.Lane })
	x.taken(o, Reason{Kind: ReasonClass, Class: class.Name}, e.scheduler.Class(o.sched.Class).Limit, running, func(other *Operation) bool { return other.sched.Class == o.sched.Class })
}

// taken adds a reason if as many operations as limit use a resource. The holder is the operation
// that started first. mu of the engine is held.
func (x *explainer) taken(o *Operation, r Reason, limit int, operations []*Operation, uses func(*Operation) bool) {
	var first *Operation
	for _, other := range operations {
		if uses(other) {
			r.Running++
			if first == nil || other.started < first.started {
				first = other
			}
		}
	}
	if limit > 0 && r.Running >= limit {
		r.Limit, r.Since = limit, o.engine.clock.Wall(first.started)
		x.add(o, r, first)
	}
}

func (e *engine) heldUp(kind ReasonKind, s signals.Signal, until int64) Reason {
	return Reason{Kind: kind, Signal: s, Since: s.Time, Expires: e.clock.Wall(until)}
}

// body adds what the body of an operation waits for.
func (x *explainer) body(o *Operation) {
	var waits []bodyWait
	o.engine.mu.Lock()
	if d := o.rare.Load(); d != nil && d.suspension != nil {
		for _, w := range d.waits {
			waits = append(waits, *w)
		}
	}
	o.engine.mu.Unlock()
	for _, w := range waits {
		if w.on.engine == nil {
			x.add(o, Reason{Kind: ReasonBody, What: w.what, Since: w.since, Expires: w.until}, nil)
		} else if r, holder, waits := w.on.reason(); waits {
			x.add(o, r, holder)
		}
	}
}
