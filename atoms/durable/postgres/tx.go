package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// ErrIsolation means that the transaction of the caller is not READ COMMITTED. With another
// isolation level, items of a key could run in the wrong order or never.
var ErrIsolation = errors.New("postgres: the transaction must be read committed")

// ErrTooManyKeys means that the transaction of the caller has added items of more than about [MaxKeys]
// keys and Unique ids. The caller must roll back. Use several transactions, or [durable.Queue.EnqueueAll].
var ErrTooManyKeys = errors.New("postgres: the transaction adds items of too many keys: use several transactions, or EnqueueAll")

// MaxKeys is how many keys and Unique ids the items of one transaction may have. Each has a lock in the shared
// memory of the server, which has 6,400 in all by default.
const MaxKeys = 2000

// Enqueue adds an item to q in the transaction of the caller. If the caller commits, the item is
// in the queue; if the caller rolls back, it is not. The queue must be on a [Store]. Processes
// find the item at their next poll, or at once if the caller calls Store.Wake(q.Name()) after
// the commit.
//
// Until the transaction ends, the key of the item is locked: other transactions that add or end
// items of this key wait, and also those that add an item with this Unique id. The queue adds and ends items of several keys in one transaction, so
// items of other keys may wait, too. If the caller calls q.Enqueue for this key before the
// commit, it waits for its own transaction.
func Enqueue[T any](ctx context.Context, tx pgx.Tx, q *durable.Queue[T], item T) (durable.ItemID, error) {
	id, _, err := EnqueueUnique(ctx, tx, q, item)
	return id, err
}

// EnqueueUnique is [Enqueue], and also says whether the item was added: see [durable.Queue.EnqueueUnique].
func EnqueueUnique[T any](ctx context.Context, tx pgx.Tx, q *durable.Queue[T], item T) (id durable.ItemID, added bool, err error) {
	s, ok := q.Store().(*Store)
	if !ok {
		return 0, false, fmt.Errorf("postgres: queue %q is on a %T, not on a store of PostgreSQL", q.Name(), q.Store())
	}
	insert, err := q.Prepare(ctx, item)
	if err != nil {
		return 0, false, err
	}
	var done []durable.Inserted
	err = s.within(ctx, tx, func(p *pipeline) {
		p.countKeys()
		p.insert(q.Name(), []durable.Insert{insert}, &done)
	})
	if err != nil {
		return 0, false, err
	}
	return done[0].ID, !done[0].Duplicate, nil
}

// Finish ends the running item as done, in the transaction of the caller: the end and the rest
// of the transaction are committed together, or not at all. Ctx is the context of the item's
// body. If the process has lost the item, Finish returns [durable.ErrLeaseLost], and the caller
// must roll back. Until the transaction ends, the key of the item is locked, as by [Enqueue]. The
// next item of the key can start after the commit, even before the body returns. If the body
// returns an error after the commit, the item is still done.
func Finish(ctx context.Context, tx pgx.Tx) error {
	claim := durable.ClaimFrom(ctx)
	s, ok := durable.StoreFrom(ctx).(*Store)
	if !ok {
		return errors.New("postgres: Finish is for the body of an item in a store of PostgreSQL, called with its context")
	}
	var t durable.Turned
	err := s.within(ctx, tx, func(p *pipeline) {
		p.turn(durable.Node{Queue: claim.Queue}, []durable.End{{ID: claim.ID, Key: claim.Key, Token: claim.Token, Kind: durable.EndDone, Result: durable.ResultFrom(ctx)}}, durable.Want{}, true, &t, new(bool))
	})
	switch {
	case err != nil:
		return err
	case t.Ends[0].Outcome != durable.OutcomeEnded:
		return durable.ErrLeaseLost
	}
	durable.MarkFinished(ctx)
	return nil
}

// countKeys counts the locks of the transaction at every hundredth call, because counting is
// not cheap.
func (p *pipeline) countKeys() {
	p.rows(func(rows pgx.Rows) error {
		var locks int
		if err := rows.Scan(&locks); err != nil || locks <= MaxKeys {
			return err
		}
		return ErrTooManyKeys
	}, `
select case when calls % 100 = 0 then (select pg_catalog.count(*) from pg_catalog.pg_locks where pid = pg_catalog.pg_backend_pid() and locktype = 'advisory') else 0 end
from (select pg_catalog.set_config('ephemeral.calls', (coalesce(nullif(pg_catalog.current_setting('ephemeral.calls', true), ''), '0')::int + 1)::text, true)::int as calls) as c`)
}

// maxIdle is the setting after which the server ends a transaction that waits for its caller.
const maxIdle = "idle_in_transaction_session_timeout"

// within calls fill, which adds statements, and runs these in the transaction of the
// caller.
func (s *Store) within(ctx context.Context, tx pgx.Tx, fill func(p *pipeline)) error {
	p := &pipeline{Store: s}
	var isolation string
	p.rows(func(rows pgx.Rows) error {
		if err := rows.Scan(&isolation); err != nil || isolation == "read committed" {
			return err
		}
		return fmt.Errorf("%w, not %s", ErrIsolation, isolation)
	}, "select pg_catalog.current_setting('transaction_isolation')")
	if s.opts.MaxIdle > 0 {
		ms := max(1, s.opts.MaxIdle.Milliseconds())
		p.do("select pg_catalog.set_config($1, $2::bigint::text, true) where pg_catalog.current_setting($1)::interval not between interval '1 ms' and $2::bigint * interval '1 ms'", maxIdle, ms)
	}
	fill(p)
	if err := tx.SendBatch(ctx, &p.Batch).Close(); err != nil {
		if guard.Is(err, ErrIsolation) || guard.Is(err, ErrTooManyKeys) {
			return err
		}
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}
