package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// What durable_class_1 does with a class.
const (
	declared = iota + 1
	set
	reset
)

func (p *pipeline) class(kind int, queue string, c durable.Class) {
	p.do("select {s}.durable_class_1($1, $2, $3, $4, $5, $6)", kind, queue, c.Name, c.Limit, c.Rate.PerSecond, int64(c.Rate.Burst))
}

// declare stores what a node has, in the order of names, in which all nodes lock them.
func (p *pipeline) declare(node durable.Node) {
	for _, c := range slices.SortedFunc(slices.Values(node.Classes), func(a, b durable.Class) int { return strings.Compare(a.Name, b.Name) }) {
		p.class(declared, node.Queue, c)
	}
}

// strange returns the classes of items, sorted, of which this process does not know that they have a
// row: claims look only for classes that have one.
func (p *pipeline) strange(queue string, items []durable.Insert) (names []string) {
	for _, i := range items {
		if at, found := slices.BinarySearch(names, i.Class); i.Class != "" && !found {
			if _, known := p.known.Load(durable.Insert{Lane: queue, Class: i.Class}.Place()); !known {
				names = slices.Insert(names, at, i.Class)
			}
		}
	}
	return names
}

// SetClass is as in [durable.Store].
func (s *Store) SetClass(ctx context.Context, queue string, c durable.Class) error {
	return s.change(ctx, set, queue, c)
}

// ResetClass is as in [durable.Store].
func (s *Store) ResetClass(ctx context.Context, queue, class string) error {
	return s.change(ctx, reset, queue, durable.Class{Name: class})
}

// change changes a class, and then waits for the turns under way, which lock the rows of their nodes.
func (s *Store) change(ctx context.Context, kind int, queue string, c durable.Class) error {
	err := s.transact(ctx, changes, func(p *pipeline) { p.class(kind, queue, c) })
	if err != nil {
		return err
	}
	return s.transact(ctx, changes, func(p *pipeline) {
		p.do("select from {s}.durable_node where queue = $1 order by id for update", queue)
	})
}

// classes adds a statement that reads the classes of a queue, or only that of an item, or of the head
// before it, without what waits.
func (p *pipeline) classes(queue string, item durable.ItemID, read func(durable.ClassStats)) {
	const known = "(i.class is not null or c.lim > 0 or c.rate > 0 or c.is_set)"
	const columns = `, coalesce(c.lim, 0), coalesce(c.rate, 0), coalesce(c.burst, 0), coalesce(c.used, 0), coalesce(c.is_set, false),
	case when c.rate > 0 and o.tokens < 1 then pg_catalog.now() + least(pg_catalog.ceil((1 - o.tokens) / c.rate * 1000000), 9000000000000000) * interval '1 microsecond' end `
	const tokens = "cross join lateral (select {s}.durable_tokens_1({s}.durable_come_1(c.rate, c.since, pg_catalog.now()), c.mark, c.burst) as tokens) as o"
	sql, args := `
select coalesce(c.name, i.class), coalesce(i.pending, 0), coalesce(i.running, 0)`+columns+`
from (select * from {s}.durable_class where queue = $1) as c full join (
	select pg_catalog.split_part(lane, pg_catalog.chr(1), 2) as class, pg_catalog.count(*) filter (where state <> 4) as pending, pg_catalog.count(*) filter (where state = 4) as running
	from (
		select lane, 2 as state from {s}.durable_item where queue = $1 and lane >= pg_catalog.chr(1) and lane < pg_catalog.chr(2) and state in (2, 8)
		union all select lane, 4 from {s}.durable_item where queue = $1 and lane >= pg_catalog.chr(1) and lane < pg_catalog.chr(2) and state = 4
	) as i group by 1
) as i on i.class = c.name `+tokens+" where "+known+" order by 1", []any{queue}
	if item != 0 {
		sql, args = `
select i.class, 0, (select pg_catalog.count(*) from {s}.durable_item as r where r.queue = $1 and r.state = 4 and r.lane >= pg_catalog.chr(1) || i.class || pg_catalog.chr(1) and r.lane < pg_catalog.chr(1) || i.class || pg_catalog.chr(2))`+columns+`
from (
	select pg_catalog.split_part(coalesce(h.lane, me.lane), pg_catalog.chr(1), 2) as class
	from {s}.durable_item as me left join lateral (select h.lane from {s}.durable_item as h where me.state + 0 = 1 and h.queue = $1 and h.key = me.key and h.key <> '' and h.state in (2, 4, 8, 16) offset 0) as h on true
	where me.queue || '' = $1 and me.id = $2
) as i left join {s}.durable_class as c on c.queue = $1 and c.name = i.class `+tokens+" where i.class <> ''", []any{queue, item}
	}
	p.rows(func(rows pgx.Rows) error {
		var c durable.ClassStats
		var next *time.Time
		err := rows.Scan(&c.Name, &c.Pending, &c.Running, &c.Limit, &c.Calls.PerSecond, &c.Calls.Burst, &c.Calls.Used, &c.Set, &next)
		if next != nil {
			c.Next = *next
		}
		read(c)
		return err
	}, sql, args...)
}
