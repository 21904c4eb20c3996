package core

import (
	"cmp"
	"slices"
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
	r.Operation = o.id
	if holder != nil {
		r.Holder = holder.id
		x.holders = append(x.holders, holder)
	}
	x.Reasons = append(x.Reasons, r)
}

// explain adds why one operation waits.
func (x *explainer) explain(o *Operation) {
	e := o.engine
	e.lockFresh()
	now := e.clock.now()
	status := o.status
	if x.Operation == 0 {
		x.Operation, x.Status, x.Time = o.id, status, e.clock.wall(now)
	}
	if status == StatusPending {
		x.pending(o, now)
	} else if d := o.rest.Load(); status == StatusSuspended && d.ready != nil {
		x.add(o, Reason{Kind: ReasonResuming}, nil)
		x.slots(o)
	}
	b := e.stuck.bodies[o.id]
	e.mu.Unlock()
	if b.stuck {
		x.add(o, Reason{Kind: ReasonStuck, What: b.why(), Since: e.clock.wall(b.stuckSince)}, nil)
	}
	if status&(StatusRunning|StatusSuspended) != 0 {
		x.body(o)
	}
}

// pending adds why a pending operation waits. mu of its engine is held.
func (x *explainer) pending(o *Operation, now int64) {
	e := o.engine
	if e.paused {
		x.add(o, Reason{Kind: ReasonPaused}, nil)
	}
	x.slots(o)
	if lent := e.lent - e.opts.MaxSuspended; lent > 0 && e.running.n < e.limit && e.full() {
		x.add(o, Reason{Kind: ReasonSuspended, Ahead: e.lent, Limit: e.opts.MaxSuspended}, nil)
	}
	if o.turn != nil {
		k := o.turn.key
		x.taken(o, Reason{Kind: ReasonKey, Key: k.text}, e.opts.MaxPerKey, e.started(), func(other *Operation) bool { return other.turn != nil && other.turn.key == k })
	}

	x.rates(o, now)
	resumed := e.resumeOn.look(now, 0).signal.Seq
	for _, r := range e.rulesOf(o.lane, o.class) {
		for _, s := range r.cancelOn.standing(now) {
			x.add(o, e.heldUp(ReasonRefused, s), nil)
		}
		v, forced := r.deferral(o, now, resumed)
		if !v.holds || forced <= now {
			continue
		}
		for _, s := range r.deferOn.standing(now) {
			if s.signal.Seq >= resumed {
				reason := e.heldUp(ReasonDeferred, s)
				reason.Forced = e.clock.wall(forced)
				x.add(o, reason, nil)
			}
		}
	}

	r, first := Reason{Kind: ReasonPriority, Lane: e.lanes[o.lane].Name}, (*Operation)(nil)
	e.intake.mu.Lock()
	for lane := range o.lane {
		for class := range e.classes {
			r.Ahead += e.pendingIn(int(lane), class)
			first = cmp.Or(first, e.scheduler.lanes[lane].lines[class].head)
		}
	}
	e.intake.mu.Unlock()
	x.behind(o, r, first)
	r, first = Reason{Kind: ReasonOrder}, nil
	for other := o.prev; other != nil; other = other.prev {
		r.Ahead++
		first = other
	}
	switch t := o.turn; {
	case t == nil:
	case t.up == o: // other keys take their turns first
		r.Ahead = 0
	default:
		if r.Key = t.key.text; t.up != nil {
			r.Ahead++
			first = t.up
		}
	}
	x.behind(o, r, first)
}

// behind adds that others go first, if there are any. First is one of them, or nil. Its own reasons do not follow.
func (x *explainer) behind(o *Operation, r Reason, first *Operation) {
	if r.Ahead == 0 {
		return
	}
	if first != nil {
		r.Holder = first.id
	}
	x.add(o, r, nil)
}

// rates adds when there are tokens for o. mu of its engine is held.
func (x *explainer) rates(o *Operation, now int64) {
	e := o.engine
	class := &e.classes[o.class]
	if at := e.nextTokens(o.class); at > now {
		x.add(o, Reason{Kind: ReasonRate, Class: class.Name, Expires: e.clock.wall(at)}, nil)
	}
	if b := &e.scheduler; b.rated != nil && o.turn != nil {
		if k := b.rated.known[o.turn.key.text]; k.in == &b.rated.parked && k.at > now {
			x.add(o, Reason{Kind: ReasonRate, Key: k.text, Expires: e.clock.wall(k.at)}, nil)
		}
	}
	for _, s := range class.trialOn.standing(now) {
		x.add(o, Reason{Kind: ReasonTrial, Class: class.Name, Limit: class.Trials, Signal: s.signal, Since: s.signal.Time, Expires: e.clock.wall(s.until)}, nil)
	}
}

// slots adds why there is no slot for o. mu of its engine is held.
func (x *explainer) slots(o *Operation) {
	e := o.engine
	running := e.running.appendTo(nil)
	lane, class := &e.lanes[o.lane], &e.classes[o.class]
	x.taken(o, Reason{Kind: ReasonLimit}, e.limit, running, func(*Operation) bool { return true })
	x.taken(o, Reason{Kind: ReasonLane, Lane: lane.Name}, lane.Limit, running, func(other *Operation) bool { return other.lane == o.lane })
	x.taken(o, Reason{Kind: ReasonClass, Class: class.Name}, e.scheduler.classes[o.class].limit, running, func(other *Operation) bool { return other.class == o.class })
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
		r.Limit, r.Since = limit, o.engine.clock.wall(first.started)
		x.add(o, r, first)
	}
}

func (e *engine) heldUp(kind ReasonKind, s standing) Reason {
	return Reason{Kind: kind, Signal: s.signal, Since: s.signal.Time, Expires: e.clock.wall(s.until)}
}

// body adds what the body of an operation waits for.
func (x *explainer) body(o *Operation) {
	var waits []bodyWait
	o.engine.mu.Lock()
	if d := o.rest.Load(); d != nil && d.suspension != nil {
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
