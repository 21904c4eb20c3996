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
			sql, args := t.dialect().Count(q, p)
			t.get(list{&some}, sql, append(list{t.queue}, args...)...)
			n += some
		}
		return n
	})
}

func (t *moment) placesIn(states durable.State) ([]string, error) {
	return rows(t, func(lane *string) list { return list{lane} }, t.dialect().Places(states), t.queue), t.err
}

// look reads one index from where the part begins.
func (t *moment) look(q durable.Query, p durable.Part, most int) []durable.Looked {
	sql, args := t.dialect().Look(q, p, most)
	return rows(t, func(l *durable.Looked) list { return list{&l.At, &l.ID, &l.Match} }, sql, append(list{t.queue}, args...)...)
}

// dialect is that of SQLite, at the time of the transaction.
func (t *moment) dialect() durable.Dialect {
	return durable.Dialect{
		Table: "durable_item",
		Arg:   func(n int) string { return fmt.Sprint("?", n) },
		Now:   fmt.Sprint(t.now),
		Ago:   func(us int64) string { return fmt.Sprint(t.now - us) },
		Lane:  func(name string) string { return strings.ReplaceAll(inLane, "?2", name) },
		Class: func(name string) string { return "instr(lane, char(1) || " + name + " || char(1)) = 1" },
		Find:  "instr",
		Retry: "i.state = 8",
		At:    func(column, number string) (shown, value string) { return column, number },
	}
}
