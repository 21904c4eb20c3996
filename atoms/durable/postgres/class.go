package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// What durable_class_1 does with a class.
const (
	declared = iota + 1
	set
	reset
)

func (p *pipeline) class(kind int, queue string, c durable.Class) {
	var shadow []float64 // nil: none
	if l := c.Shadow; l != nil {
		shadow = []float64{l.Rate.PerSecond, float64(l.Rate.Burst), l.CostRate.PerSecond, float64(l.CostRate.Burst)}
	}
	p.do("select {s}.durable_class_1($1, $2, $3, $4, $5, $6, $7, $8, $9)", kind, queue, c.Name, c.Limit, c.Rate.PerSecond, int64(c.Rate.Burst), c.CostRate.PerSecond, int64(c.CostRate.Burst), shadow)
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
	return s.change(ctx, queue, func(p *pipeline) { p.class(set, queue, c) })
}

// ResetClass is as in [durable.Store].
func (s *Store) ResetClass(ctx context.Context, queue, class string) error {
	return s.change(ctx, queue, func(p *pipeline) { p.class(reset, queue, durable.Class{Name: class}) })
}

// Charge is as in [durable.Store].
func (s *Store) Charge(ctx context.Context, queue, class string, calls, cost int64) error {
	return s.transact(ctx, changes, func(p *pipeline) {
		p.lockQueue(queue)
		p.do("select {s}.durable_charge_1($1, $2, pg_catalog.clock_timestamp(), $3, $4)", queue, class, calls, cost)
	})
}

// lockQueue takes the lock of the queue, as turns do that count.
func (p *pipeline) lockQueue(queue string) {
	p.do("select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{s}' || $1::text, 2))", queue)
}

// change changes what claims go by, and then waits for the turns under way, which lock the rows of their nodes.
func (s *Store) change(ctx context.Context, queue string, fill func(p *pipeline)) error {
	err := s.transact(ctx, changes, fill)
	if err != nil {
		return err
	}
	return s.transact(ctx, changes, func(p *pipeline) {
		p.do("select from {s}.durable_node where queue = $1 order by id for update", queue)
	})
}

// classes adds a statement that reads the classes of a queue, or only that of an item, or of the head
// before it, without what waits, and with Next for its cost.
func (p *pipeline) classes(queue string, item durable.ItemID, read func(durable.ClassStats)) {
	const known = "(i.class is not null or c.lim > 0 or c.rate > 0 or c.cost_rate > 0 or c.shadow or c.is_set)"
	const columns = `, coalesce(c.lim, 0), coalesce(c.rate, 0), coalesce(c.burst, 0), coalesce(c.used, 0), case when c.rate > 0 then greatest(0, -o.tokens) else 0 end,
	coalesce(c.cost_rate, 0), case when c.cost_rate > 0 then c.cost_burst else 0 end, case when c.cost_rate > 0 then c.cost_used else 0 end, case when c.cost_rate > 0 then greatest(0, -o.costs) else 0 end, coalesce(c.is_set, false),
	h.limits, coalesce(h.started, 0), coalesce(h.waited, 0), coalesce(h.longest, 0),
	pg_catalog.now() + nullif(least(greatest(0, case when c.rate > 0 and o.tokens < 1 then pg_catalog.ceil((1 - o.tokens) / c.rate * 1000000) end, o.after), 9000000000000000), 0) * interval '1 microsecond',
	pg_catalog.now() + o.after * interval '1 microsecond' `
	const tokens = `left join {s}.durable_shadow as h on c.shadow and h.queue = c.queue and h.name = c.name cross join lateral (select {s}.durable_since_1(c.since, c.seen, pg_catalog.now()) as came) as s cross join lateral (
	select b.*, case when c.cost_rate > 0 and b.need > 0 and b.costs < b.need then least(pg_catalog.ceil((b.need - b.costs) / c.cost_rate * 1000000), 9000000000000000) end as after from (select {s}.durable_tokens_1({s}.durable_come_1(c.rate, s.came, pg_catalog.now()), c.mark, c.burst) as tokens,
		{s}.durable_tokens_1({s}.durable_come_1(c.cost_rate, s.came, pg_catalog.now()), c.cost_mark, c.cost_burst) as costs, least(coalesce(i.price, 1), c.cost_burst) as need) as b) as o`
	sql, args := `
select coalesce(c.name, i.class), coalesce(i.pending, 0), coalesce(i.running, 0)`+columns+`
from (select * from {s}.durable_class where queue = $1) as c full join (
	select pg_catalog.split_part(lane, pg_catalog.chr(1), 2) as class, pg_catalog.count(*) filter (where state <> 4) as pending, pg_catalog.count(*) filter (where state = 4) as running, 1 as price
	from (
		select lane, 2 as state from {s}.durable_item where queue = $1 and lane >= pg_catalog.chr(1) and lane < pg_catalog.chr(2) and state in (2, 8)
		union all select lane, 4 from {s}.durable_item where queue = $1 and lane >= pg_catalog.chr(1) and lane < pg_catalog.chr(2) and state = 4
	) as i group by 1
) as i on i.class = c.name `+tokens+" where "+known+" order by 1", []any{queue}
	if item != 0 {
		sql, args = `
select i.class, 0, (select pg_catalog.count(*) from {s}.durable_item as r where r.queue = $1 and r.state = 4 and r.lane >= pg_catalog.chr(1) || i.class || pg_catalog.chr(1) and r.lane < pg_catalog.chr(1) || i.class || pg_catalog.chr(2))`+columns+`
from (
	select pg_catalog.split_part(coalesce(h.lane, me.lane), pg_catalog.chr(1), 2) as class, coalesce(case when h.lane is null then me.cost else h.cost end, 0) as price
	from {s}.durable_item as me left join lateral (select h.lane, h.cost from {s}.durable_item as h where me.state + 0 = 1 and h.queue = $1 and h.key = me.key and h.key <> '' and h.state in (2, 4, 8, 16) offset 0) as h on true
	where me.queue || '' = $1 and me.id = $2
) as i left join {s}.durable_class as c on c.queue = $1 and c.name = i.class `+tokens+" where i.class <> ''", []any{queue, item}
	}
	p.rows(func(rows pgx.Rows) error {
		var c durable.ClassStats
		var next, nextCost *time.Time
		var shadow []float64
		var longest int64
		err := rows.Scan(&c.Name, &c.Pending, &c.Running, &c.Limit, &c.Calls.PerSecond, &c.Calls.Burst, &c.Calls.Used, &c.Calls.Debt, &c.Cost.PerSecond, &c.Cost.Burst, &c.Cost.Used, &c.Cost.Debt, &c.Set, &shadow, &c.Shadow.Started, &c.Shadow.Waited, &longest, &next, &nextCost)
		if c.Shadow.Longest = duration(longest); shadow != nil {
			c.Shadow.Limits = core.Limits{Rate: core.Rate{PerSecond: shadow[0], Burst: int(shadow[1])}, CostRate: core.Rate{PerSecond: shadow[2], Burst: int(shadow[3])}}
		}
		if next != nil {
			c.Next = *next
		}
		if nextCost != nil {
			c.NextCost = *nextCost
		}
		read(c)
		return err
	}, sql, args...)
}
