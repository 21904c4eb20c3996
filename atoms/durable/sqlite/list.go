package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Items is as in [durable.Store].
func (s *Store) Items(ctx context.Context, queue string, q durable.Query) (durable.Page, error) {
	return look(ctx, s, queue, func(t *moment) (page durable.Page) {
		var ids []durable.ItemID
		var err error
		ids, page.Next, err = q.Walk(t.placesIn, func(p durable.Part, most int) ([]durable.Looked, error) { return t.look(q, p, most), t.err })
		if t.err == nil {
			t.err = err
		}
		known := t.find(ids...)
		for _, id := range ids {
			if i := known[id]; i != nil {
				page.Items = append(page.Items, t.full(i))
			}
		}
		return page
	})
}

// Count is as in [durable.Store].
func (s *Store) Count(ctx context.Context, queue string, q durable.Query) (int, error) {
	return look(ctx, s, queue, func(t *moment) (n int) {
		parts, _ := q.Parts(t.placesIn)
		for _, p := range parts {
			var some int
			args, where, match, _ := t.conditions(q, p)
			t.get(list{&some}, "select count(*) from durable_item where "+where+" and "+match, args...)
			n += some
		}
		return n
	})
}

// placesIn takes few steps in an index for each.
func (t *moment) placesIn(states durable.State) ([]string, error) {
	from := "durable_item where queue = ?1 and " + stateIs(states)
	return rows(t, func(lane *string) list { return list{lane} }, `
with recursive l (lane) as (
	select (select min(lane) from `+from+`)
	union all
	select (select min(lane) from `+from+` and lane > l.lane) from l where l.lane is not null
)
select lane from l where lane is not null`, t.queue), t.err
}

// look reads one index from where the part begins.
func (t *moment) look(q durable.Query, p durable.Part, most int) []durable.Looked {
	args, where, match, at := t.conditions(q, p)
	n, after, order := len(args), "id > ?%d", "id"
	if at == "" {
		at = "0"
	} else {
		after, order, args = "("+at+", id) > (?%d, ?%d)", at+", id", append(args, p.From.At)
	}
	places := []any{n + 1, n + 2}[:len(args)-n+1]
	return rows(t, func(l *durable.Looked) list { return list{&l.At, &l.ID, &l.Match} },
		"select "+at+", id, "+match+" from durable_item where "+where+" and "+fmt.Sprintf(after, places...)+" order by "+order+fmt.Sprint(" limit ", most), append(args, p.From.ID)...)
}

func stateIs(states durable.State) string {
	switch states {
	case durable.Ready | durable.Retry:
		return "state in (2, 8)"
	case durable.Finished | durable.Halted:
		return "state >= 16 and lane <> ''"
	case durable.Halted, durable.Done, durable.Dead, durable.Cancelled:
		return fmt.Sprintf("state = %d and state >= 16", states)
	}
	return fmt.Sprintf("state = %d", states)
}

// conditions are those of the items of a part, those that its items must match as well, and the column before the
// id in their order.
func (t *moment) conditions(q durable.Query, p durable.Part) (args list, where, match, at string) {
	args = list{t.queue}
	add := func(v any) string { args = append(args, v); return fmt.Sprint("?", len(args)) }
	switch where = "queue = ?1 and " + stateIs(p.State); {
	case p.Key != "" && p.State&durable.Running != 0:
		where = "queue = ?1 and state in (2, 4, 8, 16)"
	case p.State == durable.Blocked && p.Key != "":
		at = "rank"
	case p.State == durable.Blocked:
		where += " and lane = " + add(p.Place)
	case p.State&^(durable.Ready|durable.Retry) == 0:
		where, at = where+" and lane = "+add(p.Place), "run_at"
	case p.State != durable.Running:
		at = "ended"
	}
	if p.Place != "" && p.State&durable.Waiting == 0 {
		where += " and lane <> '' and lane = " + add(p.Place)
	}
	if p.Key != "" {
		where += " and key <> '' and key = " + add(p.Key)
	}
	if at == "ended" && p.Key != "" {
		where += " and state >= 32"
	}
	if q.Due {
		where += " and run_at <= " + add(t.now)
	}
	if q.Delayed {
		where += " and run_at > " + add(t.now)
	}
	match = "1"
	if q.State != 0 {
		match = "state & " + add(int(q.State)) + " <> 0"
	}
	if q.Lane != "" {
		match += " and " + strings.ReplaceAll(inLane, "?2", add(q.Lane))
	}
	if q.Class != "" { // see durable.Insert.Place
		match += " and instr(lane, char(1) || " + add(q.Class) + " || char(1)) = 1"
	}
	if q.Err != "" {
		match += " and instr(err, " + add(q.Err) + ") > 0"
	}
	if q.MinAge > 0 {
		match += " and enqueued <= " + add(t.in(-q.MinAge))
	}
	if q.MaxAge > 0 {
		match += " and enqueued > " + add(t.in(-q.MaxAge))
	}
	return args, where, match, at
}
