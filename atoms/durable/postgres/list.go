package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// A reader reads in one snapshot, by index. It holds no locks.
type reader struct {
	*Store
	ctx   context.Context
	tx    pgx.Tx
	queue string
}

// Until the transaction ends, these make the server look in indexes, and not sort what they have in order, whatever
// the statistics say.
const (
	byIndex = "select pg_catalog.set_config('enable_seqscan', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true), pg_catalog.set_config('jit', 'off', true)"
	inOrder = byIndex + ", pg_catalog.set_config('enable_sort', 'off', true)"
)

func (s *Store) reading(ctx context.Context, queue string, fn func(r reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	conn, err := s.acquire(ctx, s.pool)
	if err == nil {
		defer conn.Release()
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, inOrder)
			if err != nil {
				return err
			}
			return fn(reader{s, ctx, tx, queue})
		})
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("postgres: %w (%w)", err, context.Cause(ctx))
	case err != nil:
		err = fmt.Errorf("postgres: %w", err)
	}
	return err
}

// collect reads the rows of a statement whose first argument is the queue.
func collect[V any](r reader, read pgx.RowToFunc[V], sql string, args ...any) ([]V, error) {
	rows, _ := r.tx.Query(r.ctx, r.sql(sql), append([]any{r.queue}, args...)...)
	return pgx.CollectRows(rows, read)
}

// Items is as in [durable.Store]. It needs a few round trips.
func (s *Store) Items(ctx context.Context, queue string, q durable.Query) (page durable.Page, err error) {
	err = s.reading(ctx, queue, func(r reader) error {
		ids, next, err := q.Walk(r.places, func(p durable.Part, most int) ([]durable.Looked, error) { return r.look(q, p, most) })
		if err != nil {
			return err
		}
		page.Next = next
		page.Items, err = collect(r, func(row pgx.CollectableRow) (durable.Item, error) { return scanItem(row) }, "select "+columns+`
			from pg_catalog.unnest($2::bigint[]) with ordinality as found (id, place) cross join lateral (select * from {s}.durable_item where id = found.id and queue || '' = $1 offset 0) as i left join {s}.durable_node as n on n.id = i.node order by place`, numbers(ids))
		return err
	})
	return page, err
}

// Count is as in [durable.Store].
func (s *Store) Count(ctx context.Context, queue string, q durable.Query) (n int, err error) {
	err = s.reading(ctx, queue, func(r reader) error {
		parts, err := q.Parts(r.places)
		for _, p := range parts {
			var some []int
			if err == nil {
				sql, args := dialect.Count(q, p)
				sql = strings.Replace(sql, " count(*)", " pg_catalog.count(*)", 1)
				some, err = collect(r, pgx.RowTo[int], sql, args...)
			}
			if err != nil {
				return err
			}
			n += some[0]
		}
		return err
	})
	return n, err
}

func (r reader) places(states durable.State) ([]string, error) {
	return collect(r, pgx.RowTo[string], dialect.Places(states))
}

// look reads one index from where the part begins.
func (r reader) look(q durable.Query, p durable.Part, most int) ([]durable.Looked, error) {
	sql, args := dialect.Look(q, p, most)
	return collect(r, pgx.RowToStructByPos[durable.Looked], sql, args...)
}

// dialect is that of PostgreSQL.
var dialect = durable.Dialect{
	Table: "{s}.durable_item",
	Arg:   func(n int) string { return fmt.Sprint("$", n) },
	Now:   "pg_catalog.now()",
	Ago:   func(us int64) string { return fmt.Sprintf("pg_catalog.now() - %d * interval '1 microsecond'", us) },
	Lane:  func(name string) string { return "pg_catalog.split_part(i.lane, pg_catalog.chr(1), -1) = " + name },
	Class: func(name string) string { return "pg_catalog.split_part(i.lane, pg_catalog.chr(1), 2) = " + name },
	Find:  "pg_catalog.strpos",
	Retry: "i.state + 0 = 8",
	At: func(column, number string) (shown, value string) {
		if column == "i.rank" {
			return "i.rank::bigint", number + "::bigint::int"
		}
		return "(extract(epoch from " + column + ") * 1000000)::bigint", "timestamptz 'epoch' + " + number + "::bigint * interval '1 microsecond'"
	},
}
