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
			args, where, match, _ := p.Where(q, t.dialect())
			t.get(list{&some}, "select count(*) from durable_item as i where "+where+" and "+match, append(list{t.queue}, args...)...)
			n += some
		}
		return n
	})
}

// placesIn takes few steps in an index for each.
func (t *moment) placesIn(states durable.State) ([]string, error) {
	from := "durable_item as i where queue = ?1 and " + durable.StateIs(states)
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
	args, where, match, at := p.Where(q, t.dialect())
	args = append(list{t.queue}, args...)
	n, after, order := len(args), "id > ?%d", "id"
	if at == "" {
		at = "0"
	} else {
		after, order, args = "("+at+", id) > (?%d, ?%d)", at+", id", append(args, p.From.At)
	}
	places := []any{n + 1, n + 2}[:len(args)-n+1]
	return rows(t, func(l *durable.Looked) list { return list{&l.At, &l.ID, &l.Match} },
		"select "+at+", id, "+match+" from durable_item as i where "+where+" and "+fmt.Sprintf(after, places...)+" order by "+order+fmt.Sprint(" limit ", most), append(args, p.From.ID)...)
}

// dialect is for durable.Part.Where.
func (t *moment) dialect() durable.Dialect {
	return durable.Dialect{
		Arg:   func(n int) string { return fmt.Sprint("?", n) },
		Now:   fmt.Sprint(t.now),
		Ago:   func(us int64) string { return fmt.Sprint(t.now - us) },
		Lane:  func(name string) string { return strings.ReplaceAll(inLane, "?2", name) },
		Class: func(name string) string { return "instr(lane, char(1) || " + name + " || char(1)) = 1" },
		Find:  "instr",
	}
}
