package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Move is as in [durable.Store].
func (s *Store) Move(ctx context.Context, queue string, ids []durable.ItemID, lane string, rank int) (moved []durable.ItemID, err error) {
	broken := ""
	moved, err = change(ctx, s, queue, func(t *moment) []durable.ItemID {
		other := func(states string) string {
			return "exists (select 1 from durable_item as o where o.queue = ?1 and o.key = m.key and o.key <> '' and o.state in " + states +
				" and o.state in (1, 2, 8) and not " + strings.ReplaceAll(inLane, "lane", "o.lane") + " and o.id not in (select value from json_each(?3)))"
		}
		const mine = "id in (select value from json_each(?3)) and +queue = ?1 and +state in (1, 2, 8)"
		if t.get(list{&broken}, "select key from durable_item as m where "+mine+" and key <> '' and ("+other("(1)")+" or "+other("(2, 4, 8, 16)")+") limit 1", queue, lane, encode(ids)) {
			return nil
		}
		t.freed = true
		return rows(t, func(id *durable.ItemID) list { return list{id} }, `update durable_item set rank = ?4,
	lane = iif(lane >= char(1) and lane < char(2), char(1) || substr(lane, 2, instr(substr(lane, 2), char(1)) - 1) || char(1) || ?2, ?2)
where `+mine+" returning id", queue, lane, encode(ids), rank)
	})
	if broken != "" && err == nil {
		return nil, fmt.Errorf("%w: not all items of key %q that wait are to be moved", durable.ErrOrder, broken)
	}
	slices.Sort(moved)
	return moved, err
}

// Result is as in [durable.Store].
func (s *Store) Result(ctx context.Context, queue string, id durable.ItemID) (r durable.Result, ok bool, err error) {
	ok, err = look(ctx, s, queue, func(t *moment) bool {
		return t.get(list{&r.State, &r.Err, &r.Data}, "select state, err, (select data from durable_result as r where r.item = i.id) from durable_item as i where id = ?2 and +queue = ?1", queue, id)
	})
	return r, ok, err
}

// Depths is as in [durable.Store].
func (s *Store) Depths(ctx context.Context, queue string) ([]durable.Depth, error) {
	part := func(states string) string {
		return "select lane, state, run_at, enqueued from durable_item where queue = ?1 and state " + states
	}
	return look(ctx, s, queue, func(t *moment) []durable.Depth {
		type depth struct {
			durable.Depth
			us int64
		}
		var all []durable.Depth
		for _, d := range rows(t, func(d *depth) list { return list{&d.Place, &d.State, &d.Delayed, &d.Items, &d.us} },
			"select lane, state, state = 2 and run_at > ?2 as delayed, count(*), max(0, ?2 - min(enqueued)) from ("+
				part("= 1")+" union all "+part("in (2, 8)")+" union all "+part("= 4")+" union all "+part("= 16 and state >= 16")+") group by lane, state, delayed", queue, t.now) {
			d.Oldest = time.Duration(d.us) * time.Microsecond
			all = append(all, d.Depth)
		}
		return all
	})
}
