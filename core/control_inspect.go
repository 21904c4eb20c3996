// This file decides what is seen of a coordinator: its counters, gates, operations and signals.

package core

import (
	"iter"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
	"github.com/ephemeralgo/ephemeral/core/internal/window"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// classStats returns the counters of the classes, if there are any. mu and the intake's lock are
// held.
func (e *engine) classStats() (stats []ClassStats) {
	for i, c := range e.opts.Classes {
		pending := 0
		for lane := range e.lanes {
			pending += e.pendingIn(lane, 1+i)
		}
		class, now := uint8(1+i), e.clock.Now()
		bound, rates := e.scheduler.Class(class), e.scheduler.Rates(class, now)
		stats = append(stats, ClassStats{
			Name: c.Name, Pending: pending, Running: bound.Running, Limit: bound.Limit,
			Calls: RateStats(rates[0]), Cost: RateStats(rates[1]), Next: e.clock.Wall(e.scheduler.NextTokens(class, now)),
			Shadow: e.shadowStats(class, e.classes[class].Shadow, now),
		})
	}
	return stats
}

// A GateStatus is the state of a gate: a pattern of CancelOn, DeferOn or TrialOn. Each pattern
// of a lane or of a class is a separate gate.
type GateStatus struct {
	Kind    ReasonKind     `json:"kind"`            // ReasonRefused for CancelOn, ReasonDeferred for DeferOn, ReasonTrial for TrialOn
	Lane    string         `json:"lane,omitempty"`  // the gate is for items of this lane only; "": for all lanes
	Class   string         `json:"class,omitempty"` // the gate is for items of this class only; "": for all classes
	Pattern string         `json:"pattern"`
	Closed  bool           `json:"closed"`          // a matching signal is present; for DeferOn, no newer signal matches ResumeOn
	Signal  signals.Signal `json:"signal,omitzero"` // the newest matching signal, if the gate is closed

	// Matches is how many signals have ever matched the pattern: signals that were present
	// when the coordinator was made, and signals that were raised or held since. Signals that
	// have gone are included. 0 means that the gate has never closed: its pattern may be
	// misspelt. The count ends when the coordinator is drained or closed.
	Matches uint64 `json:"matches"`
}

// Gates returns the coordinator's gates: first the gates for all items, then the gates of lanes, then the gates
// of classes. An item that has waited for MaxDefer passes a closed gate of DeferOn, unless a held signal closes
// it.
func (c Control) Gates() []GateStatus {
	e := c.made()
	e.lockFresh()
	defer e.mu.Unlock()
	now := e.clock.Now()
	resumed := look(e.resumeOn, now, 0).signal.Seq
	var gates []GateStatus
	add := func(kind ReasonKind, lane, class, pattern string, on *signals.Gate, beyond uint64) {
		if on == nil {
			return
		}
		g := GateStatus{Kind: kind, Lane: lane, Class: class, Pattern: pattern}
		g.Matches = on.Engine().Matches()
		if v := look(on, now, beyond); v.holds && v.signal.Seq >= beyond {
			g.Closed, g.Signal = true, v.signal
		}
		gates = append(gates, g)
	}
	add(ReasonRefused, "", "", e.opts.CancelOn, e.rules.cancelOn, 0)
	add(ReasonDeferred, "", "", e.opts.DeferOn, e.rules.deferOn, resumed)
	for i, l := range e.opts.Lanes {
		add(ReasonRefused, l.Name, "", l.CancelOn, e.lanes[i].cancelOn, 0)
		add(ReasonDeferred, l.Name, "", l.DeferOn, e.lanes[i].deferOn, resumed)
	}
	for i, c := range e.opts.Classes {
		state := &e.classes[1+i]
		add(ReasonRefused, "", c.Name, c.CancelOn, state.cancelOn, 0)
		add(ReasonDeferred, "", c.Name, c.DeferOn, state.deferOn, resumed)
		add(ReasonTrial, "", c.Name, c.TrialOn, state.trialOn, 0)
	}
	return gates
}

// Name is [Options.Name].
func (c Control) Name() string { return c.made().name }

// Sink is the sink that the operations raise their signals on: [Options.Sink], or
// the coordinator's own.
func (c Control) Sink() *signals.Sink { return c.made().sink }

// Stats returns the coordinator's counters.
func (c Control) Stats() Stats {
	e := c.made()
	e.lockFresh()
	defer e.mu.Unlock()
	e.intake.mu.Lock()
	defer e.intake.mu.Unlock()
	return Stats{
		Enqueued:       e.intake.accepted(),
		Succeeded:      e.outcomes[StatusSucceeded.bit()],
		Failed:         e.outcomes[StatusFailed.bit()],
		Cancelled:      e.outcomes[StatusCancelled.bit()],
		Refused:        e.outcomes[StatusRefused.bit()],
		Dropped:        e.outcomes[StatusDropped.bit()],
		Pending:        e.scheduler.Pending() + e.intake.arrived.Len(),
		Running:        e.slots.Running.Len(),
		Suspended:      e.suspended.Len() + e.scheduler.Wanting(),
		Rejected:       e.intake.rejected,
		Overflow:       e.overflow,
		Limit:          e.slots.Limit,
		Stuck:          e.stuck.n,
		Tracked:        e.window.Len(),
		Pinned:         e.window.Pinned(),
		Forced:         e.forced,
		SignalsDropped: e.scope.Engine().Dropped(),
		Panics:         e.scope.Engine().Panics().Load(),
		Shadow:         e.shadowStats(0, e.classes[0].Shadow, e.clock.Now()),
		Paused:         e.slots.Paused,
		Closed:         e.intake.closed,
		Lanes:          e.laneStats(),
		Classes:        e.classStats(),
	}
}

// laneStats returns the counters of the lanes, if there are any. mu and the intake's lock are held.
func (e *engine) laneStats() (stats []LaneStats) {
	for i, l := range e.opts.Lanes {
		pending := 0
		for class := range e.classes {
			pending += e.pendingIn(i, class)
		}
		stats = append(stats, LaneStats{l.Name, pending, e.scheduler.Lane(uint8(i)).Running, l.Limit, l.Depth})
	}
	return stats
}

// Lookup returns a snapshot of an operation. It returns false if the id is not in the
// window.
func (c Control) Lookup(id OperationID) (Snapshot, bool) {
	e := c.made()
	o := e.find(id)
	if o == nil {
		return Snapshot{}, false
	}
	e.mu.Lock()
	s := e.snapshot(o)
	e.mu.Unlock()
	s.Parent = o.Parent()
	return s, true
}

// Operations yields the operations that q selects and that exist when the loop starts, in
// the order in which they were accepted. It takes each snapshot when the loop gets to
// that operation, and skips operations that have left the window by then. No lock is held
// while the loop's body runs. The cost grows with the operations it looks at before the
// loop ends or the Limit of q is reached.
func (c Control) Operations(q OperationQuery) iter.Seq[Snapshot] {
	e := c.made()
	return e.operations(q, func(*Operation) {})
}

// operations does the work of Operations. After each snapshot it calls visit with the lock held.
func (e *engine) operations(q OperationQuery, visit func(*Operation)) iter.Seq[Snapshot] {
	// The loop is a function of its own: this one is copied into each instance of Coordinator.
	return func(yield func(Snapshot) bool) { e.yieldOperations(q, visit, yield) }
}

func (e *engine) yieldOperations(q OperationQuery, visit func(*Operation), yield func(Snapshot) bool) {
	n := 0
	for o := range e.walk(q.After, q.NewestFirst) {
		e.mu.Lock()
		if e.index.Get(o.owner.ID) != o || !q.selects(o) {
			e.mu.Unlock()
			continue
		}
		s := e.snapshot(o)
		visit(o)
		e.mu.Unlock()
		if q.Pattern != "" && !s.Has(q.Pattern) {
			continue
		}
		s.Parent = o.Parent()
		if n++; !yield(s) || n == q.Limit {
			return
		}
	}
}

// walk yields the operations of the index in the order of their ids: all that exist when the loop
// starts, or only those after one id.
func (e *engine) walk(after OperationID, back bool) iter.Seq[*Operation] {
	return func(yield func(*Operation) bool) {
		e.lockFresh()
		from, to := after+1, e.index.Newest()
		if back {
			from, to = 1, min(to, after-1) // after 0: all operations
		}
		for {
			p, found := e.index.Some(from, to, back)
			e.mu.Unlock()
			if !found {
				return
			}
			for i := range p.Values {
				if back {
					i = window.Block - 1 - i
				}
				if o := p.Values[i]; o != nil && from <= o.owner.ID && o.owner.ID <= to && !yield(o) {
					return
				}
			}
			if from = p.First + window.Block; back {
				from, to = 1, p.First-1
			}
			e.mu.Lock()
		}
	}
}

// Pin keeps an operation in the window, whatever its age and number, until unpin is
// called. An operation stays until all its pins are undone; only the first call of an
// unpin counts. Ok is false if the operation is unknown, or if [Options.MaxTracked]
// operations are pinned already.
func (c Control) Pin(id OperationID) (unpin func(), ok bool) {
	e := c.made()
	e.lockFresh()
	defer e.mu.Unlock()
	o := e.index.Get(id)
	if o == nil || !e.window.Pin(&o.sched, e.opts.MaxTracked) {
		return func() {}, false
	}
	pinned := true
	return func() {
		e.mu.Lock()
		defer e.unlock()
		if pinned && e.index.Get(id) == o && e.window.Unpin(&o.sched) {
			e.forget(o, e.clock.Now())
		}
		pinned = false
	}, true
}

// Evict removes a finished operation from the window now, pinned or not. It returns false
// if the operation is unknown, or has not finished. To end an operation that has not
// finished, use Cancel.
func (c Control) Evict(id OperationID) bool {
	e := c.made()
	e.lockFresh()
	defer e.unlock()
	o := e.index.Get(id)
	if o == nil || o.status()&StatusFinished == 0 {
		return false
	}
	e.forget(o, e.clock.Now())
	e.window.Remove(&o.sched)
	return true
}

// OnFinalized calls fn exactly once for every operation that leaves the window, with its
// last snapshot. Close calls it for the operations that are still in the window. It calls
// fn on the goroutine that evicts the operation, without a lock. That goroutine may be a
// worker, which runs nothing else while fn blocks. The calls of one goroutine are in the
// order of eviction. Several goroutines may call fn at once, whatever MaxConcurrency is.
// Flush and Drain may return before these calls, Close does not. A panic of fn is counted
// in [Stats]. For cancel see [signals.Sink.Subscribe].
func (c Control) OnFinalized(fn func(Snapshot)) (cancel func()) {
	e := c.made()
	need(fn != nil, "OnFinalized needs a function")
	return hook.New(glob.Pattern{}, fn).Attach(&e.mu, &e.final)
}

// Echoes yields the echoes of operations that have left the window, oldest first.
// Operation, Key and Source of q are compared with the operation. Pattern selects
// operations that have a matching signal. Within is the longest time since the
// operation left.
func (c Control) Echoes(q signals.Query) iter.Seq[Echo] {
	e := c.made()
	return func(yield func(Echo) bool) { slices.Values(e.findEchoes(q))(yield) }
}

func (e *engine) findEchoes(q signals.Query) (found []Echo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	e.echoes.expire(now)
	for i := range e.echoes.N {
		x := &e.echoes.Ring[e.echoes.At(i)]
		id, key := x.ID, x.Key
		if q.Within > 0 && x.at < now-int64(q.Within) || q.Key != "" && q.Key != key || q.Operation != 0 && q.Operation != id || q.Source != "" && q.Source != e.name {
			continue
		}
		facts := e.scope.SignalsOf(x.Past)
		if q.Pattern == "" || slices.ContainsFunc(facts, func(s signals.Signal) bool { return signals.Match(q.Pattern, s.Name) }) {
			found = append(found, Echo{Operation: id, Key: key, Status: x.status, Err: x.err, Signals: facts, Time: e.clock.Wall(x.at)})
		}
	}
	return found
}

// Has reports whether an operation in the window has a signal that matches pattern.
//
//ephemeral:pattern {pattern}
func (c Control) Has(pattern string) bool { return c.Count(pattern) > 0 }

// Count returns how many signals of the operations in the window match pattern.
//
//ephemeral:pattern {pattern}
func (c Control) Count(pattern string) int {
	e := c.made()
	e.lockFresh()
	if !e.tabulated {
		e.tabulated = true
		e.scope.Engine().Tabulate(e.indexed)
	}
	e.mu.Unlock()
	return e.scope.Count(pattern)
}

// indexed yields the owners of all operations of the index. mu is held.
func (e *engine) indexed(yield func(*signals.Owner) bool) {
	for _, o := range e.index.From(1) {
		if !yield(&o.owner) {
			return
		}
	}
}

// Sense yields the signals of the operations in the window that q selects, in the order
// in which they were raised; see [signals.Sensor].
func (c Control) Sense(q signals.Query) iter.Seq[signals.Signal] {
	e := c.made()
	return func(yield func(signals.Signal) bool) { slices.Values(e.sense(q))(yield) }
}

func (e *engine) sense(q signals.Query) []signals.Signal {
	return e.scope.Engine().Sense(q, func() []*signals.Owner {
		if q.Operation == 0 {
			return e.owners()
		}
		if o := e.find(q.Operation); o != nil {
			return []*signals.Owner{&o.owner}
		}
		return nil
	})
}

// Monitor counts the signals that operations raise and that match pattern, over the last
// span. It begins with the signals of the operations in the window.
//
//ephemeral:pattern {pattern}
func (c Control) Monitor(pattern string, span time.Duration) *signals.Monitor {
	e := c.made()
	return e.scope.Engine().Monitor(pattern, span, e.owners)
}

// owners lists the owners of the operations that exist.
func (e *engine) owners() (all []*signals.Owner) {
	for o := range e.walk(0, false) {
		all = append(all, &o.owner)
	}
	return all
}

// changed returns when the status of the operation changed last.
func (o *Operation) changed() int64 {
	if o.status()&StatusFinished != 0 {
		return o.sched.Value
	}
	return max(o.sched.Enqueued, o.started)
}

// selects reports whether q selects o; it does not look at signals. engine.mu is held.
func (q *OperationQuery) selects(o *Operation) bool {
	e := o.engine
	return (q.Status == 0 || q.Status&o.status() != 0) &&
		(q.Lane == "" || q.Lane == e.lanes[o.sched.Lane].Name) &&
		(q.Class == "" || q.Class == e.classes[o.sched.Class].Name) &&
		(q.Within <= 0 || e.clock.Now()-o.changed() <= int64(q.Within)) &&
		(q.Key == "" || q.Key == o.Key())
}
