package top

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A view is what the screen shows: all in short, the operations of a coordinator, one
// operation, or the signals of a sink.
type view struct {
	name        string // of the view in the API
	coordinator string
	operation   string
	sink        string
	can         []string // actions on the coordinator
}

// An action is a change that a key asks for.
type action struct {
	key   string
	text  string // what it does
	limit bool   // it needs a number
	body  map[string]any
}

// maxShown is how many operations, and how many signals, a view has at most. A page sends no
// more at once.
const maxShown = "200"

// load asks for a view. The answer has the title of the page only in the overview.
func (v view) load(ctx context.Context, c *client, exact bool) (title string, now time.Time, tables []table, err error) {
	switch v.name {
	case "operations":
		var f operations
		err = c.get(ctx, v.name, url.Values{"coordinator": {v.coordinator}, "status": {"pending,running,suspended"}, "limit": {maxShown}}, &f)
		return "", f.Time, []table{f.table(v, clock{f.Time, exact})}, err
	case "operation":
		var f explained
		err = c.get(ctx, v.name, url.Values{"coordinator": {v.coordinator}, "id": {v.operation}}, &f)
		return "", f.Time, f.tables(v, clock{f.Time, exact}), err
	case "signals":
		var f signals
		err = c.get(ctx, v.name, url.Values{"sink": {v.sink}, "limit": {maxShown}}, &f)
		return "", f.Time, []table{f.table(clock{f.Time, exact})}, err
	default:
		var f overview
		err = c.get(ctx, "overview", nil, &f)
		return f.Title, f.Time, f.tables(clock{f.Time, exact}), err
	}
}

func (f *overview) tables(at clock) []table {
	coordinators := newTable("coordinator", 1, "COORDINATOR STATE PENDING RUNNING SUSPENDED LIMIT SUCCEEDED FAILED CANCELLED REFUSED DROPPED PER_SECOND OLDEST ERROR")
	lanes := newTable("lane", 2, "LANE COORDINATOR PENDING RUNNING LIMIT")
	classes := newTable("class", 2, "CLASS COORDINATOR PENDING RUNNING LIMIT")
	gates := newTable("gate", 5, "GATE COORDINATOR KIND LANE CLASS STATE MATCHES SIGNAL KEY")
	for _, c := range f.Coordinators {
		rate := 0
		if n := len(c.Throughput); n > 0 {
			rate = c.Throughput[n-1]
		}
		r := coordinators.add(c.ID, state(c.Paused, c.Closed), c.Pending, c.Running, c.Suspended, c.Limit,
			c.Succeeded, c.Failed, c.Cancelled, c.Refused, c.Dropped, rate, at.text(c.Oldest), c.Error)
		r.opens = view{name: "operations", coordinator: c.ID, can: c.Can}
		r.permit(c.Can, "p", switched(c.Paused, "pause", "resume"), "coordinator "+c.ID, map[string]any{"coordinator": c.ID})
		r.permit(c.Can, "l", "limit", "coordinator "+c.ID+", now "+strconv.Itoa(c.Limit), map[string]any{"coordinator": c.ID})
		for _, l := range c.Lanes {
			lanes.add(l.Name, c.ID, l.Pending, l.Running, l.Limit)
		}
		for _, l := range c.Classes {
			classes.add(l.Name, c.ID, l.Pending, l.Running, l.Limit)
		}
		for _, g := range c.Gates {
			gates.add(g.Pattern, c.ID, g.Kind, g.Lane, g.Class, switched(g.Closed, "open", "closed"), g.Matches, g.Signal.Name, g.Signal.Key)
		}
	}
	queues := newTable("queue", 1, "QUEUE STATE NODES OLDEST ITEMS ERROR")
	for _, q := range f.Queues {
		var counts []string
		for _, s := range q.Counts {
			counts = append(counts, s.State+"="+strconv.Itoa(s.Items))
		}
		var oldest time.Time
		if q.OldestMS > 0 {
			oldest = f.Time.Add(-time.Duration(q.OldestMS) * time.Millisecond)
		}
		r := queues.add(q.Name, state(q.Paused, false), q.Nodes, at.text(oldest), strings.Join(counts, " "), q.Error)
		r.permit(q.Can, "p", switched(q.Paused, "pauseQueue", "resumeQueue"), q.Name, map[string]any{"queue": q.Name})
	}
	schedules := newTable("schedule", 2, "SCHEDULE GROUP STATE LAST NEXT PLAN ERROR")
	for _, s := range f.Schedules {
		r := schedules.add(s.Name, s.Group, state(s.Paused, false), at.text(s.Last), at.text(s.Next), s.When, s.Error)
		r.permit(s.Can, "p", switched(s.Paused, "pauseSchedule", "resumeSchedule"), s.Name, map[string]any{"schedules": s.Group, "schedule": s.Name})
	}
	sinks := newTable("sink", 1, "SINK STORED HELD CAPACITY RAISED")
	for _, s := range f.Sinks {
		sinks.add(s.Name, s.Stored, s.Held, s.Capacity, s.Raised).opens = view{name: "signals", sink: s.Name}
	}
	return []table{coordinators, lanes, classes, gates, queues, schedules, sinks}
}

func (f *operations) table(v view, at clock) table {
	t := newTable("operation", 2, "OPERATION COORDINATOR STATUS KEY LANE CLASS ENQUEUED STARTED WAITS PROGRESS")
	for _, o := range f.Operations {
		o.add(&t, v, at)
	}
	return t
}

func (o operation) add(t *table, v view, at clock) {
	id := strconv.FormatInt(o.ID, 10)
	r := t.add(id, v.coordinator, o.Status, o.Key, o.Lane, o.Class, at.text(o.Enqueued), at.text(o.Started), o.Waits, o.Progress.Text)
	r.opens = view{name: "operation", coordinator: v.coordinator, operation: id, can: v.can}
	r.permit(v.can, "c", "cancel", "operation "+id+" of "+v.coordinator, map[string]any{"coordinator": v.coordinator, "operation": o.ID})
}

func (f *explained) tables(v view, at clock) []table {
	one := newTable("operation", 2, "OPERATION COORDINATOR STATUS KEY LANE CLASS ENQUEUED STARTED WAITS PROGRESS")
	f.Operation.add(&one, v, at)
	one.rows[0].opens = view{}
	reasons := newTable("reason", 2, "KIND REASON SINCE EXPIRES")
	for _, r := range f.Explanation.Reasons {
		reasons.add(r.Kind, r.Text, at.text(r.Since), at.text(r.Expires))
	}
	return []table{one, reasons, signalTable(f.Signals, "", at)}
}

func (f *signals) table(at clock) table {
	held := slices.DeleteFunc(f.Held, func(s signal) bool {
		return slices.ContainsFunc(f.Signals, func(other signal) bool { return other.Seq == s.Seq })
	})
	return signalTable(slices.Concat(held, f.Signals), f.Sink, at)
}

// signalTable lists signals, the newest first.
func signalTable(list []signal, sink string, at clock) table {
	t := newTable("signal", 2, "SIGNAL NUMBER SINK TIME KEY HELD COORDINATOR OPERATION")
	for _, s := range slices.Backward(list) {
		t.add(s.Name, s.Seq, sink, at.text(s.Time), s.Key, switched(s.Held, "", "held"), s.Coordinator, switched(s.Operation != 0, "", strconv.FormatInt(s.Operation, 10)))
	}
	return t
}

// permit adds an action if the page may permit it.
func (r *row) permit(can []string, key, name, on string, body map[string]any) {
	if slices.Contains(can, name) {
		body["action"] = name
		r.acts = append(r.acts, action{key, clean(name + " " + on), name == "limit", body})
	}
}

func switched(on bool, no, yes string) string {
	if on {
		return yes
	}
	return no
}

func state(paused, closed bool) string {
	if closed {
		return "closed"
	}
	return switched(paused, "open", "paused")
}
