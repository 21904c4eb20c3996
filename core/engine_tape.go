// This file decides what a recording of package whatif gets to know.

package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func init() {
	tape.Record = record
	tape.Resolve = func(options any, keyed bool) (any, sched.Config, error) {
		opts, err := options.(Options).checked(keyed)
		if err != nil {
			return opts, sched.Config{}, err
		}
		lanes, classes := opts.parts()
		return opts, boardOf(&opts, lanes, classes, keyed), nil
	}
}

// record is tape.Record.
func record(coordinator any, t *tape.Tape) (tape.Engine, bool) {
	c, ok := coordinator.(interface{ made() *engine })
	if !ok {
		return tape.Engine{}, false
	}
	e := c.made()
	unsubscribe := e.sink.Subscribe(e.gatePatterns(), func(signals.Signal) { // a held signal may come while the gate is shut
		e.mu.Lock()
		defer e.unlock()
		if e.tape.Load() == t {
			e.tapeGates(t, e.clock.Now())
		}
	})
	engine, ok := e.record(t, unsubscribe)
	if !ok {
		unsubscribe()
	}
	return engine, ok
}

// gatePatterns are the patterns of all gates.
func (e *engine) gatePatterns() string {
	all := []string{e.opts.CancelOn, e.opts.DeferOn, e.opts.ResumeOn}
	for _, l := range e.opts.Lanes {
		all = append(all, l.CancelOn, l.DeferOn)
	}
	for _, c := range e.opts.Classes {
		all = append(all, c.CancelOn, c.DeferOn, c.TrialOn)
	}
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), ",")
}

func (e *engine) record(t *tape.Tape, unsubscribe func()) (tape.Engine, bool) {
	e.mu.Lock()
	defer e.unlock()
	if !e.tape.CompareAndSwap(nil, t) {
		return tape.Engine{}, false
	}
	now := e.clock.Now()
	e.tapeGates(t, now)
	return tape.Engine{
		Options: e.recorded(), Keyed: e.keyed, Now: now,
		Take: func(empty []tape.Event, half chan struct{}) ([]tape.Event, uint64) {
			e.mu.Lock()
			defer e.mu.Unlock()
			return t.Take(empty, half), t.Dropped
		},
		Stop: func() (alive []tape.Event, now int64) {
			unsubscribe()
			e.mu.Lock()
			defer e.mu.Unlock()
			now = e.clock.Now()
			if !e.tape.CompareAndSwap(t, nil) {
				return nil, now
			}
			e.collect()
			for _, o := range slices.Concat(operationsOf(e.scheduler.All()), e.started()) {
				t.Key = t.Hash(o.sched.Key())
				var event tape.Event
				e.fill(t, &event, o, tape.Alive, now)
				alive = append(alive, event)
			}
			return alive, now
		},
	}, true
}

// recorded returns the options that decide what starts, as they are now. A coordinator can be made of
// them. mu is held.
func (e *engine) recorded() Options {
	o := Options{
		Name: e.name, MaxConcurrency: e.slots.Limit, MaxQueued: e.opts.MaxQueued, MaxSuspended: cmp.Or(e.slots.MaxSuspended, -1),
		DropOldest: e.opts.DropOldest, KeyRate: e.opts.KeyRate, KeyCostRate: e.opts.KeyCostRate, MaxDefer: e.opts.MaxDefer,
		CancelOn: e.opts.CancelOn, DeferOn: e.opts.DeferOn, ResumeOn: e.opts.ResumeOn, Lanes: slices.Clone(e.opts.Lanes),
	}
	if e.keyed {
		o.MaxPerKey = e.opts.MaxPerKey
	}
	if len(o.Lanes) > 0 {
		o.Ageing = cmp.Or(e.opts.Ageing, -1)
	}
	for i := range o.Lanes {
		if o.Lanes[i].DeferOn == "" {
			o.Lanes[i].MaxDefer = 0
		}
	}
	for i := range e.opts.Classes {
		c := e.classes[1+i].Class
		c.Shadow = nil // counts, and decides nothing
		if c.DeferOn == "" {
			c.MaxDefer = 0
		}
		if c.TrialOn == "" {
			c.Trials = 0
		}
		o.Classes = append(o.Classes, c)
	}
	return o
}

// tapeKind is the kind of event for the end of an operation.
func tapeKind(s Status) tape.Kind {
	switch s {
	case StatusSucceeded:
		return tape.Succeeded
	case StatusFailed:
		return tape.Failed
	case StatusCancelled:
		return tape.Cancelled
	case StatusRefused:
		return tape.Refused
	}
	return tape.Dropped
}

// tapeKey notes the key of an operation, before the scheduler forgets it. mu is held.
func (e *engine) tapeKey(o *Operation) {
	if t := e.tape.Load(); t != nil {
		t.Key = t.Hash(o.sched.Key())
	}
}

// tapeEnd records the end of an operation. It has its cost and has no status yet. mu is held.
func (e *engine) tapeEnd(t *tape.Tape, o *Operation, kind tape.Kind, now int64) {
	event, half := t.Next()
	if half != nil {
		e.out.close(half)
	}
	if event != nil {
		e.fill(t, event, o, kind, now)
	}
}

func (e *engine) fill(t *tape.Tape, event *tape.Event, o *Operation, kind tape.Kind, now int64) {
	event.Kind, event.Lane, event.Class, event.Key = kind, o.sched.Lane, o.sched.Class, t.Key
	event.Brief = o.sched.Flags&brief != 0
	event.ID, event.At = uint64(o.owner.ID), o.sched.Enqueued
	if o.started == 0 {
		event.Wait, event.Cost = max(0, now-o.sched.Enqueued), o.sched.Value
	} else { // a worker may have read the clock before the item came
		event.Started, event.Wait, event.Run = true, max(0, o.started-o.sched.Enqueued), max(0, now-o.started)
	}
	if d := o.rare.Load(); d != nil && d.taped != nil {
		x := d.taped
		event.Cost, event.Calls, event.More = cmp.Or(x.cost, event.Cost), x.calls, x.more
		if event.Away = x.away; x.began != 0 {
			event.Away += now - x.began
		}
	}
}

// taped is what the tape wants to know of an operation at its end. Guarded by engine.mu.
type taped struct {
	cost        int64 // since the start; 0: none, or it has started before the recording
	calls, more int64 // charged
	away        int64 // how long it was without a slot
	began       int64 // since when it is without a slot; 0: it has one, or wants one
}

// onTape makes a place for what the tape wants to know. mu is held.
func (o *Operation) onTape() *taped {
	d := o.details()
	if d.taped == nil {
		d.taped = new(taped)
	}
	return d.taped
}

// tapeStart notes the cost of an operation that is about to start: after that, its Value may be something else. mu is
// held.
func (e *engine) tapeStart(o *Operation) {
	if o.sched.Value != 0 && e.tape.Load() != nil {
		o.onTape().cost = o.sched.Value
	}
}

// tapeAway notes that an operation gives up its slot, and tapeBack that it wants it back. mu is held.
func (e *engine) tapeAway(o *Operation) {
	o.onTape().began = e.clock.Now()
}

func (e *engine) tapeBack(o *Operation) {
	if t := o.onTape(); t.began != 0 {
		t.away, t.began = t.away+e.clock.Now()-t.began, 0
	}
}

// tapeReject records an item that was not accepted, unless the intake has ended: that is no lack of room.
func (e *engine) tapeReject(o *Operation, err error) {
	t := e.tape.Load()
	if t == nil {
		return
	}
	kind := tape.Rejected
	if _, refused := err.(*RefusedError); refused {
		kind = tape.Refused
	}
	e.mu.Lock()
	e.intake.mu.Lock()
	newest, closed := e.intake.id, e.intake.closed
	e.intake.mu.Unlock()
	if e.tape.Load() == t && !closed {
		t.Key = t.Hash(o.owner.Key)
		event, half := t.Next()
		if event != nil {
			e.fill(t, event, o, kind, e.clock.Now())
			event.ID = uint64(newest)
		}
		if half != nil {
			e.out.close(half)
		}
	}
	e.unlock()
}

// tapeGates records which gates have moved, and sets the alarm for the next move that nobody tells. mu
// is held.
func (e *engine) tapeGates(t *tape.Tape, now int64) {
	e.intake.mu.Lock()
	newest := uint64(e.intake.id)
	e.intake.mu.Unlock()
	resumed := look(e.resumeOn, now, 0).signal.Seq
	n := uint16(0)
	moved := func(d sched.Deferral) {
		gate := tape.Event{Gate: n, ID: newest, At: now}
		n++
		if d.Holds {
			gate.Shut, gate.Held, gate.Since, gate.Expires = true, d.Held, d.Since, d.Expires
			if d.Expires != clock.Never && !e.finalized {
				e.alarm.Set(e.clock, max(d.Expires, now+1), e.wake)
			}
		}
		if half := t.Moved(gate); half != nil {
			e.out.close(half)
		}
	}
	of := func(r *rule, trial *signals.Gate) {
		cancels, tries := look(r.cancelOn, now, 0), look(trial, now, 0)
		moved(sched.Deferral{Holds: cancels.holds, Expires: cancels.expires})
		moved(r.deferral(now, resumed))
		moved(sched.Deferral{Holds: tries.holds, Expires: tries.expires})
	}
	moved(sched.Deferral{Holds: e.slots.Paused, Expires: clock.Never})
	of(&e.rules, nil)
	for i := range e.opts.Lanes {
		of(&e.lanes[i].rule, nil)
	}
	for i := range e.opts.Classes {
		of(&e.classes[1+i].rule, e.classes[1+i].trialOn)
	}
}
