package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// micros is a time in a column; no time is 0.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// Record is as in [durable.Store].
func (s *Store) Record(ctx context.Context, queue string, records []durable.Record) ([]bool, error) {
	return change(ctx, s, queue, func(t *moment) (current []bool) {
		for _, r := range records {
			current = append(current, t.recordAt(r))
		}
		return current
	})
}

// recordAt writes steps of a claim, and reports whether it is the current one.
func (t *moment) recordAt(r durable.Record) bool {
	i := &item{Item: durable.Item{ID: r.ID}}
	if !t.get(list{&i.place, &i.Attempts, &i.Flow}, "select lane, attempts, flow from durable_item where id = ? and +queue = ? and state = 4 and token = ?", r.ID, t.queue, r.Token) {
		return false
	}
	i.SetPlace(i.place)
	before := *i
	if t.record(i, r.Version, r.Steps); i.Attempts != before.Attempts || i.Flow != before.Flow {
		t.do("update durable_item set attempts = ?, flow = ? where id = ?", i.Attempts, i.Flow, i.ID)
	}
	return true
}

// record writes steps of an item. The caller saves the item.
func (t *moment) record(i *item, version int, steps []durable.Step) {
	if len(steps) > 0 {
		t.begin(i, version)
	}
	for _, s := range steps {
		if s.State != durable.StepBegun {
			i.Attempts = min(i.Attempts, 1)
		}
		t.do("insert or replace into durable_step (item, name, seq, state, compensates, attempt, took, at, until, signal, data) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			i.ID, s.Name, s.Seq, s.State, s.Compensates, s.Attempt, s.Took, t.now, micros(s.Until), s.Signal, s.Data)
	}
}

// begin makes the flow of an item, unless it has one.
func (t *moment) begin(i *item, version int) {
	if i.Flow == 0 {
		i.Flow = 1
		t.do("insert into durable_flow (item, version, class) values (?, ?, ?)", i.ID, version, i.Class)
	}
}

// Journal is as in [durable.Store].
func (s *Store) Journal(ctx context.Context, queue string, id durable.ItemID, data bool) (j durable.Journal, ok bool, err error) {
	ok, err = look(ctx, s, queue, func(t *moment) bool {
		i := t.find(id)[id]
		if i != nil {
			j = t.journal(i, data)
		}
		return i != nil
	})
	return j, ok, err
}

func (t *moment) journal(i *item, data bool) durable.Journal {
	j := durable.Journal{Class: i.Class, Time: at(t.now)}
	if i.Flow == 0 {
		return j
	}
	var w durable.Parked
	var since, until int64
	t.get(list{&j.Version, &j.Class, &j.Undo, &j.Reason, &w.Step, &w.Pattern, &since, &until}, "select version, class, undo, reason, step, pattern, since, until from durable_flow where item = ?", i.ID)
	if w.Since, w.Until = at(since), at(until); w.Step != "" && i.State == durable.Ready && until > t.now {
		j.Wait = &w
	}
	type step struct {
		durable.Step
		at, until int64
	}
	result := "null"
	if data {
		result = "data"
	}
	for _, s := range rows(t, func(s *step) list {
		return list{&s.Name, &s.Seq, &s.State, &s.Compensates, &s.Attempt, &s.Took, &s.at, &s.until, &s.Signal, &s.Data}
	}, "select name, seq, state, compensates, attempt, took, at, until, signal, "+result+" from durable_step where item = ?", i.ID) {
		s.At, s.Until = at(s.at), at(s.until)
		j.Steps = append(j.Steps, s.Step)
	}
	slices.SortFunc(j.Steps, func(a, b durable.Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
	return j
}

// toUndo are the steps of an item that are to be undone, at most one.
func (t *moment) toUndo(i *item) []durable.Step {
	return rows(t, func(s *durable.Step) list { return list{&s.Name, &s.State, &s.Compensates} },
		"select name, state, compensates from durable_step where item = ? and compensates and state <> ? limit 1", i.ID, durable.StepUndone)
}

// apply changes an item as the end of its claim says, with its flow.
func (t *moment) apply(i *item, e durable.End) (state durable.State, kind durable.EndKind, text string) {
	flow, place := i.Flow, i.place
	if attempts := i.Attempts; e.Kind != durable.EndDone {
		t.record(i, e.Version, e.Steps)
	} else if i.Flow > 0 {
		t.record(i, e.Version, e.Steps)
		i.Attempts = attempts
	}
	attempt := i.Attempts
	var j durable.Journal
	if i.Flow > 0 && e.Kind != durable.EndDone {
		if waited := false; t.get(list{&j.Undo, &j.Reason, &waited}, "select undo, reason, step <> '' from durable_flow where item = ?", i.ID) && waited {
			t.do("update durable_flow set step = '' where item = ?", i.ID) // its deadline has passed
		}
		j.Steps = t.toUndo(i)
	}
	undone := i.Flow == 2
	state, kind, text = e.Apply(&i.Item, &j)
	switch {
	case i.Flow == 2 && !undone:
		i.runAt = t.now
		t.undo(i, j.Undo, j.Reason)
	case state == durable.Ready && e.Kind == durable.EndParked:
		t.park(i, e, attempt)
	case state&durable.Waiting != 0 && e.Kind != durable.EndGivenBack:
		i.runAt = t.in(e.After)
	}
	if i.Flow != flow || i.place != place {
		t.do("update durable_item set flow = ?, lane = ? where id = ?", i.Flow, i.place, i.ID)
	}
	return state, kind, text
}

// undo lets an item be undone.
func (t *moment) undo(i *item, state durable.State, reason string) {
	i.Flow = 2
	t.do("update durable_flow set undo = ?, reason = ?, step = '' where item = ?", state, reason, i.ID)
}

// park lets an item wait, or changes its class.
func (t *moment) park(i *item, e durable.End, attempt int) {
	t.begin(i, e.Version)
	i.Class = e.Park.Class
	i.place = durable.Insert{Lane: i.Lane, Class: i.Class}.Place()
	if e.Park.Step == "" {
		i.runAt = t.now
		return
	}
	w := durable.Parked{Step: e.Park.Step, Pattern: e.Park.Pattern}
	state, since, until := durable.StepBegun, t.now, t.in(e.Park.For)
	if !t.get(list{&state, &since, &until}, "select state, at, until from durable_step where item = ? and name = ?", i.ID, w.Step) {
		t.record(i, e.Version, []durable.Step{{Name: w.Step, Seq: e.Park.Seq, State: state, Attempt: attempt, Until: at(until)}})
	}
	if state != durable.StepBegun {
		return
	}
	if sent := t.sent(i, w.Pattern); sent != nil {
		i.runAt = t.now
		t.taken(i.ID, w.Step, *sent)
		return
	}
	i.runAt = until
	t.do("update durable_flow set step = ?, pattern = ?, since = ?, until = ? where item = ?", w.Step, w.Pattern, since, until, i.ID)
}

// sent is the first signal that an item can take, or nil.
func (t *moment) sent(i *item, pattern string) (first *durable.Signal) {
	if pattern == "" {
		return nil
	}
	look := func(target string, of any) {
		for _, s := range rows(t, func(s *durable.Signal) list { return list{&s.Seq, &s.Name} },
			"select seq, name from durable_signal where queue = ? and "+target+" and taken = 0 and at >= ? order by seq", t.queue, of, i.enqueued) {
			if signals.Match(pattern, s.Name) {
				if first == nil || s.Seq < first.Seq {
					first = &s
				}
				break
			}
		}
	}
	look("item = ? and item <> 0", i.ID)
	if i.Key != "" {
		look("key = ? and item = 0", i.Key)
	}
	return first
}

// taken gives a signal to the step of an item that waits for it.
func (t *moment) taken(id durable.ItemID, step string, s durable.Signal) {
	t.do("update durable_step set state = ?, signal = ?, at = ?, data = (select data from durable_signal where seq = ?) where item = ? and name = ?", durable.StepDone, s.Name, t.now, s.Seq, id, step)
	t.do("update durable_signal set taken = ? where seq = ?", id, s.Seq)
}

// cancelFlow reports whether it has let an item be undone, because some of its steps are to be undone.
func (t *moment) cancelFlow(i *item, reason string) bool {
	switch {
	case i.Flow == 2 && i.State&(durable.Waiting|durable.Running) != 0:
		t.undo(i, durable.Cancelled, reason)
		return true
	case i.State&(durable.Waiting|durable.Halted|durable.Dead) == 0:
		return false
	case len(t.toUndo(i)) == 0:
		t.do("update durable_flow set step = '' where item = ?", i.ID)
		return false
	}
	t.undo(i, durable.Cancelled, reason)
	t.do("update durable_item set flow = 2 where id = ?", i.ID)
	t.again(i)
	return true
}

// forget lets an item begin without steps.
func (t *moment) forget(i *item) {
	t.get(list{&i.Class}, "select class from durable_flow where item = ?", i.ID)
	t.dropFlows([]int64{int64(i.ID)})
	t.do("update durable_item set flow = 0, lane = ? where id = ?", durable.Insert{Lane: i.Lane, Class: i.Class}.Place(), i.ID)
}

func (t *moment) dropFlows(ids []int64) {
	t.do("delete from durable_flow where item in (select value from json_each(?))", encode(ids))
	t.do("delete from durable_step where item in (select value from json_each(?))", encode(ids))
}

// Signal is as in [durable.Store].
//
//ephemeral:none
func (s *Store) Signal(ctx context.Context, queue string, all []durable.Signal) ([]durable.Signalled, error) {
	return change(ctx, s, queue, func(t *moment) (done []durable.Signalled) {
		for _, s := range all {
			done = append(done, t.signal(s))
		}
		return done
	})
}

func (t *moment) signal(s durable.Signal) (done durable.Signalled) {
	mine, of := "key = ? and item = 0", any(s.Key)
	if s.Item != 0 {
		if mine, of = "item = ? and item <> 0", s.Item; !t.get(list{new(int)}, "select 1 from durable_item where id = ? and +queue = ?", s.Item, t.queue) && t.err == nil {
			t.err = durable.ErrUnknown
		}
	}
	if s.UniqueID != "" && t.get(list{&done.Seq}, "select seq from durable_signal where queue = ? and key = ? and item = ? and unique_id = ? and unique_id <> ''", t.queue, s.Key, s.Item, s.UniqueID) {
		done.Duplicate = true
		return done
	}
	kept := 0
	if t.get(list{&kept}, "select count(*) from durable_signal where queue = ? and "+mine, t.queue, of); kept >= durable.MaxSignals {
		t.err = fmt.Errorf("%w: %d signals are kept for key %.80q, item %d", core.ErrFull, kept, s.Key, s.Item)
	}
	t.get(list{&done.Seq}, "insert into durable_signal (queue, key, item, name, at, looked, unique_id, data) values (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7) returning seq",
		t.queue, s.Key, s.Item, s.Name, t.now, s.UniqueID, s.Data)
	s.Seq = done.Seq
	done.Woken = t.wakeFlow(s)
	return done
}

// wakeFlow gives a signal to the flow that waits for it, and reports whether there is one.
func (t *moment) wakeFlow(s durable.Signal) bool {
	where, of := isHead, any(s.Key)
	if s.Item != 0 {
		where, of = "queue = ? and id = ?", s.Item
	}
	var id durable.ItemID
	var key, step, pattern string
	if !t.get(list{&id, &key, &step, &pattern}, "select id, key, step, pattern from durable_item cross join durable_flow on item = id where "+where+" and state = 2 and step <> '' and until > ?", t.queue, of, t.now) ||
		!signals.Match(pattern, s.Name) {
		return false
	}
	t.taken(id, step, s)
	t.do("update durable_flow set step = '' where item = ?", id)
	t.do("update durable_item set run_at = ? where id = ?", t.space(key, t.now), id)
	t.freed = true
	return true
}

// Signals is as in [durable.Store].
//
//ephemeral:none
func (s *Store) Signals(ctx context.Context, queue, key string, after int64, limit int) ([]durable.Signal, error) {
	return look(ctx, s, queue, func(t *moment) []durable.Signal { return t.signals(key, after, limit) })
}

func (t *moment) signals(key string, after int64, limit int) (all []durable.Signal) {
	type signal struct {
		durable.Signal
		at int64
	}
	for _, s := range rows(t, func(s *signal) list { return list{&s.Seq, &s.Key, &s.Name, &s.at, &s.UniqueID, &s.Taken, &s.Data} },
		"select seq, key, name, at, unique_id, taken, data from durable_signal where queue = ? and key = ? and item = 0 and seq > ? order by seq limit ?", t.queue, key, after, limit) {
		s.Time = at(s.at)
		all = append(all, s.Signal)
	}
	return all
}

// pruneItems deletes items, and also returns those that have flows.
func (t *moment) pruneItems(query string, args ...any) (gone, flows []int64) {
	type item struct {
		id   int64
		flow bool
	}
	for _, i := range rows(t, func(i *item) list { return list{&i.id, &i.flow} }, query, args...) {
		if gone = append(gone, i.id); i.flow {
			flows = append(flows, i.id)
		}
	}
	return gone, flows
}

// pruneFlows deletes what is kept of the flows of items that are deleted.
func (t *moment) pruneFlows(gone, flows []int64) {
	if len(flows) > 0 {
		t.dropFlows(flows)
	}
	t.do("delete from durable_signal where item in (select value from json_each(?)) and item <> 0", encode(gone))
}

// pruneSignals deletes old signals of keys, and returns how many it has looked at. Those that must be kept are not looked
// at again before the time has passed once more: so what it costs does not grow with them.
func (t *moment) pruneSignals(age time.Duration, most int) int {
	if age < 0 {
		return 0
	}
	old := t.in(-age)
	looked := rows(t, func(seq *int64) list { return list{seq} }, "select seq from durable_signal where queue = ? and item = 0 and looked <= ? order by looked limit ?", t.queue, old, most+durable.MaxSignals)
	if len(looked) == 0 {
		return 0
	}
	gone := t.do(`delete from durable_signal as s where seq in (select value from json_each(?1)) and not exists (
	select 1 from durable_item as i where i.queue = s.queue and i.key = s.key and i.key <> '' and i.state in (2, 4, 8, 16)) and not exists (
	select 1 from durable_item as i where i.queue = s.queue and i.key = s.key and i.key <> '' and i.state in (32, 64, 128) and i.state >= 32 and i.ended > ?2) returning 1`, encode(looked), old)
	if age == 0 {
		return gone // the others can be looked at again at once
	}
	t.do("update durable_signal set looked = ? where seq in (select value from json_each(?))", t.now, encode(looked))
	return len(looked)
}
