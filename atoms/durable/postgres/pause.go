package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// active is true for pauses of a queue that are not over.
const active = "queue = $1 and (until is null or until > pg_catalog.clock_timestamp())"

// isPaused is true if the whole queue is paused.
const isPaused = "exists (select from {s}.durable_pause where " + active + " and key = '' and class = '')"

// spaced is the later one of a time and the time at which the key of an item i has a token.
func spaced(from string) string {
	return "greatest(" + from + ", (select {s}.durable_space_1($1, i.key, q.key_every, q.key_burst, pg_catalog.clock_timestamp(), " + from + ") from {s}.durable_queue as q where q.queue = $1))"
}

// Pause is as in [durable.Store].
func (s *Store) Pause(ctx context.Context, queue string, p durable.Pause, paused bool) error {
	err := s.change(ctx, queue, func(to *pipeline) { to.pause(queue, p, paused) })
	if guard.Is(err, durable.ErrPauses) {
		return durable.ErrPauses
	}
	return err
}

func (to *pipeline) pause(queue string, p durable.Pause, paused bool) {
	to.lockQueue(queue)
	if !paused {
		to.do("delete from {s}.durable_pause where queue = $1 and key = $2 and class = $3", queue, p.Key, p.Class)
		return
	}
	to.rows(func(rows pgx.Rows) error {
		var others int
		if err := rows.Scan(&others); err != nil || others < durable.MaxPauses || p.Key+p.Class == "" {
			return err
		}
		return durable.ErrPauses
	}, "select pg_catalog.count(*) from {s}.durable_pause where "+active+" and key || class <> '' and (key, class) <> ($2, $3)", queue, p.Key, p.Class)
	to.do(`
insert into {s}.durable_pause as p (queue, key, class, since, until, reason, node_name, auto)
select $1, $2, $3, c.now, c.now + nullif($4::bigint, 0) * interval '1 microsecond', $5, $6, $7 from (select pg_catalog.clock_timestamp() as now) as c
on conflict (queue, key, class) do update set since = excluded.since, until = excluded.until, reason = excluded.reason, node_name = excluded.node_name, auto = excluded.auto
where not excluded.auto or p.until <= coalesce(excluded.until, 'infinity')`,
		queue, p.Key, p.Class, micros(p.For), p.Reason, p.By, p.Auto)
	to.do("insert into {s}.durable_queue (queue, pauses) values ($1, true) on conflict (queue) do update set pauses = true", queue) // always: prunePauses sees that
}

// paused reads the pauses of a queue that are not over and that concern a class and a key.
func (p *pipeline) paused(queue string, concerns func(durable.Pause) bool, to *[]durable.Pause) {
	p.rows(func(rows pgx.Rows) error {
		var one durable.Pause
		var until *time.Time
		err := rows.Scan(&one.Class, &one.Key, &one.Since, &until, &one.Reason, &one.By, &one.Auto)
		if until != nil {
			one.Until = *until
		}
		if concerns(one) {
			*to = append(*to, one)
		}
		return err
	}, "select class, key, since, until, reason, node_name, auto from {s}.durable_pause where "+active+" order by class, key", queue)
}

// prunePauses deletes pauses that nobody needs any more, and buckets of keys that stay full when an item that runs has taken its token.
func (p *pipeline) prunePauses(queue string, max int, more *bool) {
	p.prune("pause", fmt.Sprintf("until <= (select pg_catalog.clock_timestamp()) - %d * interval '1 microsecond'", micros(durable.KeptPause)), queue, max, more)
	// A Pause that commits meanwhile has changed the row, which then has another place.
	p.do(`
with q as (select ctid as place from {s}.durable_queue where queue = $1 and pauses and not exists (select from {s}.durable_pause where queue = $1))
update {s}.durable_queue as u set pauses = false from q where u.queue = $1 and u.ctid = q.place`, queue)
	p.prune("key", "full_at <= (select pg_catalog.clock_timestamp() - coalesce((select q.key_every from {s}.durable_queue as q where q.queue = $1), 0) * interval '1 microsecond') order by full_at", queue, max, more)
}
