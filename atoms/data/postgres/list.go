package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/core"
)

// Limits of a page of rows. Bytes are counted on disk: the server compresses values, at most by a
// factor of about 100.
const (
	pageRows  = 500
	pageBytes = 1 << 20
)

// List implements [data.Engine]. It reads pages. Each page shows the table at the time when it is
// read. The loop holds no connection.
func (e *engine) List(ctx context.Context, prefix string, values bool) iter.Seq2[data.Item, error] {
	return e.pages(ctx, prefix, values, "")
}

// Query is [Store.Query] for bytes.
func (e *engine) Query(ctx context.Context, path []string, value any) iter.Seq2[data.Item, error] {
	query, err := contained(path, value)
	switch {
	case e.closed.Load():
		err = fmt.Errorf("postgres: Query: %w", core.ErrClosed)
	case e.opts.bytes:
		err = fmt.Errorf("postgres: Query needs a column of JSONB, and that of table %s is BYTEA", e.table)
	}
	if err != nil {
		return func(yield func(data.Item, error) bool) { yield(data.Item{}, err) }
	}
	return e.pages(ctx, "", true, "and value @> $3::text::jsonb", query)
}

// contained returns the JSON of an object with value at path.
func contained(path []string, value any) (string, error) {
	encoded, err := json.Marshal(value)
	for i := len(path) - 1; i >= 0 && err == nil; i-- {
		encoded, err = json.Marshal(map[string]json.RawMessage{path[i]: encoded})
	}
	if err != nil {
		return "", fmt.Errorf("postgres: the value of Query at %q: %w", path, err)
	}
	return string(encoded), nil
}

// pages yields the rows that a condition selects.
func (e *engine) pages(ctx context.Context, prefix string, values bool, condition string, args ...any) iter.Seq2[data.Item, error] {
	return func(yield func(data.Item, error) bool) {
		from, to := prefix, after(prefix)
		for {
			items, more, err := e.page(ctx, values, condition, append([]any{[]byte(from), []byte(to)}, args...))
			if err != nil {
				yield(data.Item{}, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if !more {
				return
			}
			from = items[len(items)-1].Key + "\x00"
		}
	}
}

// page reads rows until a limit is reached, and reports whether there may be more. The window
// functions use only the sizes of the values.
func (e *engine) page(ctx context.Context, values bool, condition string, args []any) (items []data.Item, more bool, err error) {
	sql := fmt.Sprintf("from %s where key >= $1 and key < $2 %s order by key limit %d", e.table, condition, pageRows)
	if values {
		sql = fmt.Sprintf(`select key, value, found from (
			select key, value, pg_catalog.count(*) over () as found,
				pg_catalog.sum(pg_catalog.pg_column_size(value)) over (order by key rows between unbounded preceding and 1 preceding) as before
			from (select key, value %s) as page) as sized
			where before is null or before < %d order by key`, sql, pageBytes)
	} else {
		sql = fmt.Sprintf("select key, null::bytea, pg_catalog.count(*) over () from (select key %s) as page order by key", sql)
	}
	var found int
	err = e.do(ctx, false, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (item data.Item, err error) {
			var key []byte
			err = row.Scan(&key, &item.Value, &found)
			item.Key = string(key)
			return item, err
		})
		return err
	})
	return items, err == nil && len(items) > 0 && (found == pageRows || len(items) < found), err
}

// after returns the least string that is greater than all keys with the prefix.
func after(prefix string) string {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return strings.Repeat("\xff", data.MaxKey+1) // above all keys
	}
	return prefix[:n-1] + string([]byte{prefix[n-1] + 1})
}
