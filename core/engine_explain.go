package core

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// An Explanation says why an operation waits: every reason there is, and, where
// that is another operation, what that one waits for in turn. A pending operation
// waits to run; a running or suspended one may wait, in its body, for other operations.
type Explanation struct {
	Operation OperationID `json:"operation"`
	Status    Status      `json:"status"`
	Time      time.Time   `json:"time"`              // when this was so
	Reasons   []Reason    `json:"reasons,omitempty"` // none if it does not wait, or is about to start
}

// A Reason is one reason for an operation to wait. Which fields say more depends
// on the kind.
type Reason struct {
	Kind      ReasonKind  `json:"kind"`
	Operation OperationID `json:"operation"` // which waits

	Holder  OperationID `json:"holder,omitempty"`  // has what it waits for; of several, the one that started first
	Of      string      `json:"of,omitempty"`      // name of the Holder's coordinator, where it may be another one
	Key     string      `json:"key,omitempty"`     // that is busy
	Lane    string      `json:"lane,omitempty"`    // that is full, that it is in, or that it waits for room in
	Running int         `json:"running,omitempty"` // so many run
	Limit   int         `json:"limit,omitempty"`   // of so many that may
	Ahead   int         `json:"ahead,omitempty"`   // so many go first, or are waited for
	What    string      `json:"what,omitempty"`    // its body waits for; see [Operation.WaitsFor]
	Signal  Signal      `json:"signal,omitzero"`   // that holds it up
	Since   time.Time   `json:"since,omitzero"`    // since when that is so
	Expires time.Time   `json:"expires,omitzero"`  // when the signal's lease or age ends, or the wait; zero: not by itself
	Forced  time.Time   `json:"forced,omitzero"`   // when MaxDefer is over; zero: never, as while a signal is held
}

// A ReasonKind says what a [Reason] is about.
type ReasonKind string

const (
	ReasonPaused   ReasonKind = "paused"   // the coordinator is, until Resume
	ReasonLimit    ReasonKind = "limit"    // as many as may, run: Running, Limit, Holder
	ReasonLane     ReasonKind = "lane"     // the same for its lane: Lane, Running, Limit, Holder
	ReasonKey      ReasonKind = "key"      // the same for its key: Key, Running, Limit, Holder
	ReasonRefused  ReasonKind = "refused"  // it will not run because of CancelOn: Signal, Since, Expires
	ReasonDeferred ReasonKind = "deferred" // DeferOn: Signal, Since, Expires, Forced
	ReasonPriority ReasonKind = "priority" // items of higher lanes go first: Lane, Ahead
	ReasonOrder    ReasonKind = "order"    // earlier items of its lane or key go first: Ahead
	ReasonNested   ReasonKind = "nested"   // its body waits: for Holder, for the Ahead operations of a Flush, or for room: Of, Lane
	ReasonBody     ReasonKind = "body"     // its body says that it waits: What, Since, Expires

	ReasonSuspended ReasonKind = "suspended" // of Ahead suspended operations, MaxSuspended lend their slots: Limit
	ReasonResuming  ReasonKind = "resuming"  // it was suspended, its wait is over, and it waits for a slot: further reasons say why
)

// maxExplained is how many signals an explanation names for one rule, and how many
// operations it follows.
const maxExplained = 16

// Explain says why an operation waits, following what it waits for from one
// operation to the next, across coordinators. It is false for an id that is not,
// or no longer, in the window.
func (c Control) Explain(id OperationID) (Explanation, bool) {
	e := c.made()
	o := e.find(id)
	if o == nil {
		return Explanation{}, false
	}
	var x Explanation
	queue := []*Operation{o}
	for i := 0; i < len(queue) && i < maxExplained; i++ {
		status, at, reasons, holders := queue[i].engine.explain(queue[i])
		if i == 0 {
			x = Explanation{Operation: id, Status: status, Time: at}
		}
		x.Reasons = append(x.Reasons, reasons...)
		for _, holder := range holders {
			if !slices.Contains(queue, holder) {
				queue = append(queue, holder)
			}
		}
	}
	return x, true
}

// explain returns why one operation waits, and for which others.
func (e *engine) explain(o *Operation) (status Status, at time.Time, reasons []Reason, holders []*Operation) {
	e.lockFresh()
	now := e.clock.now()
	status, at = o.status, e.clock.wall(now)
	if status == StatusPending {
		reasons, holders = e.reasons(o, now)
	} else if d := o.rest.Load(); status == StatusSuspended && d.ready != nil {
		reasons, holders = e.slotReasons(o)
		reasons = append([]Reason{{Kind: ReasonResuming}}, reasons...)
	}
	e.mu.Unlock()
	if status&(StatusRunning|StatusSuspended) != 0 {
		waits, others := e.bodyReasons(o)
		reasons, holders = append(reasons, waits...), append(holders, others...)
	}
	for i := range reasons {
		reasons[i].Operation = o.id
	}
	return status, at, reasons, holders
}

// reasons returns why a pending operation waits, and for which others. mu is held.
func (e *engine) reasons(o *Operation, now int64) (reasons []Reason, holders []*Operation) {
	lane := &e.lanes[o.lane]
	if e.paused {
		reasons = append(reasons, Reason{Kind: ReasonPaused})
	}
	slots, holders := e.slotReasons(o)
	reasons = append(reasons, slots...)
	if lent := e.lent - e.opts.MaxSuspended; lent > 0 && e.running.n < e.limit && e.full() {
		reasons = append(reasons, Reason{Kind: ReasonSuspended, Ahead: e.lent, Limit: e.opts.MaxSuspended})
	}
	if o.turn != nil {
		k := o.turn.key
		r, holder := e.taken(Reason{Kind: ReasonKey, Key: k.text}, e.opts.MaxPerKey, e.started(), func(other *Operation) bool { return other.turn != nil && other.turn.key == k })
		if holder != nil {
			reasons, holders = append(reasons, r), append(holders, holder)
		}
	}

	resumed := e.resumeOn.look(now, 0).signal.Seq
	for _, r := range [...]*rule{&e.rules, &e.laneRules[o.lane]} {
		for _, s := range r.cancelOn.standing(now) {
			reasons = append(reasons, e.heldUp(ReasonRefused, s))
		}
		v := r.deferOn.look(now, resumed)
		forced := int64(0)
		if r.maxDefer >= 0 && !v.held {
			forced = later(max(o.enqueued, v.since), r.maxDefer)
		}
		if !v.holds || v.signal.Seq < resumed || r.maxDefer >= 0 && !v.held && forced <= now {
			continue
		}
		for _, s := range r.deferOn.standing(now) {
			if s.signal.Seq < resumed {
				continue
			}
			reason := e.heldUp(ReasonDeferred, s)
			reason.Forced = e.clock.wall(forced)
			reasons = append(reasons, reason)
		}
	}

	higher := 0
	e.intake.mu.Lock()
	for i := range o.lane {
		higher += int(e.intake.queues[i].accepted - e.left[i])
	}
	e.intake.mu.Unlock()
	if higher > 0 {
		reasons = append(reasons, Reason{Kind: ReasonPriority, Lane: lane.Name, Ahead: higher})
	}
	ahead := 0
	for other := o.prev; other != nil; other = other.prev {
		ahead++
	}
	if ahead > 0 {
		reasons = append(reasons, Reason{Kind: ReasonOrder, Ahead: ahead})
	}
	return reasons, holders
}

// slotReasons returns why there is no slot for o. mu is held.
func (e *engine) slotReasons(o *Operation) (reasons []Reason, holders []*Operation) {
	running := e.running.appendTo(nil)
	lane := &e.lanes[o.lane]
	if r, holder := e.taken(Reason{Kind: ReasonLimit}, e.limit, running, func(*Operation) bool { return true }); holder != nil {
		reasons, holders = append(reasons, r), append(holders, holder)
	}
	if r, holder := e.taken(Reason{Kind: ReasonLane, Lane: lane.Name}, lane.Limit, running, func(other *Operation) bool { return other.lane == o.lane }); holder != nil {
		reasons, holders = append(reasons, r), append(holders, holder)
	}
	return reasons, holders
}

// taken completes a reason if the operations that use what it is about are as many as
// limit, and returns the one that started first; nil if they are fewer. mu is held.
func (e *engine) taken(r Reason, limit int, operations []*Operation, uses func(*Operation) bool) (Reason, *Operation) {
	var first *Operation
	for _, o := range operations {
		if uses(o) {
			r.Running++
			if first == nil || o.started < first.started {
				first = o
			}
		}
	}
	if limit == 0 || r.Running < limit {
		return r, nil
	}
	r.Limit, r.Holder, r.Since = limit, first.id, e.clock.wall(first.started)
	return r, first
}

func (e *engine) heldUp(kind ReasonKind, s standing) Reason {
	return Reason{Kind: kind, Signal: s.signal, Since: s.signal.Time, Expires: e.clock.wall(s.until)}
}

// bodyReasons returns what the body of an operation waits for.
func (e *engine) bodyReasons(o *Operation) (reasons []Reason, holders []*Operation) {
	var waits []bodyWait
	e.mu.Lock()
	if d := o.rest.Load(); d != nil && d.suspension != nil {
		for _, w := range d.waits {
			waits = append(waits, bodyWait{what: w.what, on: w.on, since: w.since, until: w.until})
		}
	}
	e.mu.Unlock()
	for _, w := range waits {
		if w.on.engine == nil {
			reasons = append(reasons, Reason{Kind: ReasonBody, What: w.what, Since: w.since, Expires: w.until})
		} else if r, holder, waits := w.on.reason(); waits {
			reasons = append(reasons, r)
			if holder != nil {
				holders = append(holders, holder)
			}
		}
	}
	return reasons, holders
}

// reason returns what is waited for, unless the wait is about to end.
func (a awaited) reason() (r Reason, holder *Operation, waits bool) {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	r = Reason{Kind: ReasonNested, Of: e.name}
	switch {
	case a.on != nil:
		holder, waits = a.on, a.on.status&StatusFinished == 0
	case a.flush != nil:
		r.Ahead, waits = a.flush.left, a.flush.left > 0
		if a.flush.idle {
			r.Ahead = e.alive() + e.scheduler.pending()
		}
		for _, o := range e.started() {
			if a.flush.idle || a.flush.includes(o) {
				holder = o
				break
			}
		}
	case a.group != nil:
		a.group.mu.Lock()
		r.Ahead, waits = a.group.left, a.group.left > 0
		a.group.mu.Unlock()
		for _, o := range e.started() {
			if groupOf(o) == a.group {
				holder = o
				break
			}
		}
	default:
		e.intake.mu.Lock()
		waits = slices.Contains(e.intake.queues[a.room.operation.lane].waiters, a.room)
		e.intake.mu.Unlock()
		r.Lane = e.lanes[a.room.operation.lane].Name
	}
	if holder != nil {
		r.Holder = holder.id
	}
	return r, holder, waits
}

// String is the explanation in one line, the reasons separated by semicolons.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "operation %d %s", x.Operation, x.Status.phrase())
	who := x.Operation
	for i, r := range x.Reasons {
		switch {
		case r.Operation != who:
			fmt.Fprintf(&b, "; operation %d: ", r.Operation)
		case i == 0:
			b.WriteString(": ")
		default:
			b.WriteString("; ")
		}
		who = r.Operation
		b.WriteString(r.text(x.Time))
	}
	return b.String()
}

// phrase is the status as the end of a sentence.
func (s Status) phrase() string {
	switch s {
	case StatusSucceeded, StatusFailed:
		return "has " + s.String()
	case StatusCancelled, StatusRefused, StatusDropped:
		return "was " + s.String()
	}
	return "is " + s.String()
}

// String is the reason in words.
func (r Reason) String() string { return r.text(time.Time{}) }

// text is the reason in words, with how long things last if now is given.
func (r Reason) text(now time.Time) string {
	span := func(format string, t time.Time) string {
		if now.IsZero() || t.IsZero() {
			return ""
		}
		return fmt.Sprintf(format, t.Sub(now).Abs().Round(time.Millisecond))
	}
	taken := func(of string) string {
		var all string
		switch {
		case r.Running > r.Limit: // it was lowered
			all = fmt.Sprintf("%d of %d slots%s are taken", r.Running, r.Limit, of)
		case r.Limit == 1:
			return fmt.Sprintf("the only slot%s is taken by operation %d%s", of, r.Holder, span(", for %v", r.Since))
		default:
			all = fmt.Sprintf("all %d slots%s are taken", r.Limit, of)
		}
		return fmt.Sprintf("%s, the longest by operation %d%s", all, r.Holder, span(", for %v", r.Since))
	}
	switch r.Kind {
	case ReasonPaused:
		return "the coordinator is paused"
	case ReasonLimit:
		return taken("")
	case ReasonLane:
		return taken(fmt.Sprintf(" of lane %q", r.Lane))
	case ReasonKey:
		return taken(fmt.Sprintf(" of key %q", r.Key))
	case ReasonSuspended:
		return fmt.Sprintf("%d operations are suspended, and only %d of them lend their slots", r.Ahead, r.Limit)
	case ReasonResuming:
		return "its wait is over and it waits for a slot"
	case ReasonRefused:
		return "will be refused because of " + r.signalText() + span(", which ends in %v", r.Expires)
	case ReasonDeferred:
		return "deferred" + span(" for %v at most", r.Forced) + " because of " + r.signalText() + span(", which ends in %v", r.Expires)
	case ReasonPriority:
		return goFirst(r.Ahead, fmt.Sprintf("of lanes above %q", r.Lane))
	case ReasonOrder:
		return goFirst(r.Ahead, "before it")
	case ReasonNested:
		switch {
		case r.Ahead == 1:
			return fmt.Sprintf("its body waits for the last operation of %q", r.Of)
		case r.Ahead > 0:
			return fmt.Sprintf("its body waits for %d operations of %q", r.Ahead, r.Of)
		case r.Holder != 0:
			return fmt.Sprintf("its body waits for operation %d of %q", r.Holder, r.Of)
		case r.Lane != "":
			return fmt.Sprintf("its body waits for room in lane %q of %q", r.Lane, r.Of)
		}
		return fmt.Sprintf("its body waits for room in %q", r.Of)
	case ReasonBody:
		return fmt.Sprintf("its body waits for %s%s%s", r.What, span(", for %v", r.Since), span(", for %v more at most", r.Expires))
	}
	return string(r.Kind)
}

func goFirst(n int, which string) string {
	if n == 1 {
		return "1 item " + which + " goes first"
	}
	return fmt.Sprintf("%d items %s go first", n, which)
}

func (r Reason) signalText() string {
	var b strings.Builder
	if r.Signal.Held {
		b.WriteString("held ")
	}
	fmt.Fprintf(&b, "signal %q", r.Signal.Name)
	if r.Signal.Key != "" {
		fmt.Fprintf(&b, " for %q", r.Signal.Key)
	}
	if r.Signal.Operation != 0 {
		fmt.Fprintf(&b, " by operation %d of %q", r.Signal.Operation, r.Signal.Source)
	}
	return b.String()
}

// LogValue groups the operation, its status and the reasons in words.
func (x Explanation) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Uint64("operation", uint64(x.Operation)), slog.String("status", x.Status.String())}
	if len(x.Reasons) > 0 {
		texts := make([]string, len(x.Reasons))
		for i, r := range x.Reasons {
			texts[i] = r.text(x.Time)
		}
		attrs = append(attrs, slog.Any("reasons", texts))
	}
	return slog.GroupValue(attrs...)
}
