package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Limits of one statement, so that the memory of both sides is bounded.
const (
	maxRows  = 1000
	maxBytes = 4 << 20
)

// Save implements [data.Engine]. The items of one call are saved together or not at all. Calls
// that wait at the same time share a transaction. If the table refuses a value, only the call with
// that value fails.
func (e *engine) Save(ctx context.Context, items []data.Item) error {
	if len(items) == 0 {
		return nil
	}
	err := e.saves.Do(ctx, items)
	if guard.Is(err, groupcommit.ErrUndecided) {
		return fmt.Errorf("postgres: %w: %w", data.ErrUndecided, context.Cause(ctx))
	}
	return err
}

// commit saves the calls that waited, in as few transactions as the limits allow.
func (e *engine) commit(ctx context.Context, calls [][]data.Item, errs []error) error {
	for len(calls) > 0 {
		n := fitting(len(calls), func(i int) []data.Item { return calls[i] })
		e.commitCalls(ctx, calls[:n], errs[:n])
		calls, errs = calls[n:], errs[n:]
	}
	return nil
}

// commitCalls saves calls in one transaction. If the table refuses a value, it saves each half by
// itself. So it finds the call with that value in a logarithmic number of steps.
func (e *engine) commitCalls(ctx context.Context, calls [][]data.Item, errs []error) {
	err := e.upsert(ctx, merged(calls))
	if len(calls) > 1 && refused(err) {
		half := len(calls) / 2
		e.commitCalls(ctx, calls[:half], errs[:half])
		e.commitCalls(ctx, calls[half:], errs[half:])
		return
	}
	for i := range errs {
		errs[i] = err
	}
}

func (e *engine) upsert(ctx context.Context, items []data.Item) error {
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = item.Key
	}
	var statements []statement
	for len(items) > 0 {
		n := fitting(len(items), func(i int) []data.Item { return items[i : i+1] })
		statements = append(statements, e.upsertOf(items[:n]))
		items = items[n:]
	}
	_, err := e.change(ctx, keys, statements...)
	return err
}

func (e *engine) upsertOf(items []data.Item) statement {
	keys, values := make([][]byte, len(items)), make([][]byte, len(items))
	for i, item := range items {
		keys[i], values[i] = []byte(item.Key), bytesOf(item.Value)
	}
	return statement{fmt.Sprintf(`insert into %s (key, value) select k, %s from unnest($1::bytea[], $2::bytea[]) as new (k, v)
		on conflict (key) do update set value = excluded.value, updated_at = pg_catalog.now()`, e.table, e.value("v")), []any{keys, values}}
}

// merged returns the items of all calls. If a key comes twice, it returns only the last item,
// because a statement refuses to change a row twice. The items are in the order of their keys.
// So transactions of several processes lock the rows in one order and do not deadlock.
func merged(calls [][]data.Item) []data.Item {
	items := slices.Concat(calls...)
	slices.SortStableFunc(items, func(a, b data.Item) int { return cmp.Compare(a.Key, b.Key) })
	last := items[:0]
	for i, item := range items {
		if i+1 == len(items) || items[i+1].Key != item.Key {
			last = append(last, item)
		}
	}
	return last
}

// fitting returns how many of n parts fit into a statement, at least one.
func fitting(n int, part func(i int) []data.Item) int {
	rows, bytes := 0, 0
	for i := range n {
		for _, item := range part(i) {
			rows++
			bytes += len(item.Key) + len(item.Value)
		}
		if i > 0 && (rows > maxRows || bytes > maxBytes) {
			return i
		}
	}
	return n
}

// refused reports whether an error is about the values, not about the table or the server.
func refused(err error) bool {
	code := sqlState(err)
	return code != "" && slices.Contains([]string{
		"22",       // data exception, such as U+0000 in JSONB
		"23", "44", // broken constraints that the owner of the table has added
		"54", // program limits: the value is too large or too deep
		"P0", // a trigger
	}, code[:2])
}

// explain adds the package to the error. If the column refuses a value, it also adds the column
// and the details of the server.
func (e *engine) explain(err error) error {
	if strings.HasPrefix(guard.Text(err), "postgres: ") {
		return err
	}
	if !refused(err) {
		return fmt.Errorf("postgres: %w", err)
	}
	if pg, ok := guard.As[*pgconn.PgError](err); ok && pg.Detail != "" && pg.Code[:2] == "22" {
		err = fmt.Errorf("%w: %s", err, pg.Detail)
	}
	return fmt.Errorf("postgres: the column value (%s) of table %s refuses the value: %w", e.opts.column(), e.table, err)
}
