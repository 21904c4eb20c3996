package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Open opens the store in the table opts.Name of a SQLite file. It creates the file and the
// table if they do not exist. If the table has other columns, Open returns an error. The path
// has the same rules as in [sqlitewriter.Open]: no connection string, and no database in memory.
// All stores and writers of the same file in one process share one writer. The writer has the
// options of the Open that came first. To set options such as BusyTimeout and Mode, use
// [NewEngine]. Close releases the file.
func Open[K ~string, V any](ctx context.Context, path string, opts data.Options[V]) (data.Store[K, V], error) {
	name := cmp.Or(opts.Name, "data")
	if err := data.CheckName(name); err != nil {
		return nil, err
	}
	w, err := sqlitewriter.Open(ctx, path, sqlitewriter.Options{})
	if err != nil {
		return nil, fmt.Errorf("sqlite: store %q: %w", name, err)
	}
	e, err := newEngine(ctx, w, name)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	e.owned = true
	store, err := data.New[K](e, opts)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return store, nil
}

var _ data.Engine = (*engine)(nil)

// An engine is a [data.Engine] over a table of a SQLite file.
type engine struct {
	w     *sqlitewriter.Writer
	owned bool   // the engine owns the handle
	table string // quoted
	reads [len(reads)]*sql.Stmt
}

// The statements that read; the name of the table is left out.
const load, has, count, keys, items = 0, 1, 2, 3, 4

var reads = [...]string{
	load:  "select value from %s where key = ?",
	has:   "select exists (select 1 from %s where key = ?)",
	count: "select count(*) from %s",
	keys:  "select key, null from %s where key >= ? and key < ? order by key",
	items: "select key, value from %s where key >= ? and key < ? order by key",
}

// NewEngine returns an engine over a table of the file of w. It creates the table if it does not
// exist. [data.CheckName] says which names are valid. Several engines can share a writer. An engine
// does not close the writer: close the writer after the engine.
//
// Writes that come at the same time share a transaction. A write is one statement; Save has one
// for each item. Reads use a connection of [sqlitewriter.Writer.DB], and do not wait for writes.
// If the function of a [sqlitewriter.Writer.Tx] of the same file writes through the engine, it
// gets core.ErrWouldDeadlock. The same holds for handlers of the writer.
func NewEngine(ctx context.Context, w *sqlitewriter.Writer, table string) (data.Engine, error) {
	e, err := newEngine(ctx, w, table)
	if err != nil {
		return nil, err // not a nil *engine
	}
	return e, nil
}

func newEngine(ctx context.Context, w *sqlitewriter.Writer, table string) (*engine, error) {
	if w == nil {
		return nil, errors.New("sqlite: NewEngine needs a Writer")
	}
	if err := data.CheckName(table); err != nil {
		return nil, err
	}
	e := &engine{w: w, table: `"` + table + `"`}
	if err := e.open(ctx, table); err != nil {
		return nil, fmt.Errorf("sqlite: table %q in %s: %w", table, w.Path(), errors.Join(err, e.closeStatements()))
	}
	return e, nil
}

// open creates the table and prepares the statements that read.
func (e *engine) open(ctx context.Context, table string) error {
	_, err := e.w.Exec(ctx, "create table if not exists "+e.table+"(key blob not null primary key, value any not null) strict")
	if err == nil {
		err = e.check(ctx, table)
	}
	for i, query := range reads {
		if err == nil {
			e.reads[i], err = e.w.DB().PrepareContext(ctx, fmt.Sprintf(query, e.table))
		}
	}
	return reading(ctx, err)
}

// shape is the list of columns that check expects.
const shape = "strict table (key BLOB not null primary key, value ANY not null)"

// check returns an error if the table has other columns, or if its name differs in case: SQLite
// ignores the case of names.
func (e *engine) check(ctx context.Context, table string) error {
	var name, is string
	err := e.w.DB().QueryRowContext(ctx, `
		select name, iif(strict, 'strict ', '') || type || ' (' || (
			select group_concat(name || ' ' || type || iif("notnull", ' not null', '') || iif(pk > 0, ' primary key', ''), ', ' order by cid)
			from pragma_table_xinfo(list.name)) || ')'
		from pragma_table_list as list where schema = 'main' and name = ? collate nocase`, table).Scan(&name, &is)
	if err == nil && (name != table || is != shape) {
		err = fmt.Errorf("sqlite: there is a %s %q, but it must be a %s of exactly that name", is, name, shape)
	}
	return err
}

// bind returns a value as TEXT or BLOB.
func bind(value []byte) any {
	if utf8.Valid(value) && bytes.IndexByte(value, 0) < 0 {
		return string(value)
	}
	return value
}

// Save implements [data.Engine]: all items or none.
func (e *engine) Save(ctx context.Context, items []data.Item) error {
	const save = "(key, value) values(?, ?) on conflict(key) do update set value = excluded.value"
	statements := make([]sqlitewriter.Statement, len(items))
	for i, item := range items {
		statements[i] = sqlitewriter.Statement{SQL: "insert into " + e.table + save, Args: []any{[]byte(item.Key), bind(item.Value)}}
	}
	_, err := e.w.Batch(ctx, statements...)
	return written(ctx, err)
}

// Swap implements [data.Engine].
func (e *engine) Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (bool, error) {
	if !ok {
		return e.change(ctx, "insert into "+e.table+"(key, value) values(?, ?) on conflict(key) do nothing", []byte(key), bind(value))
	}
	return e.change(ctx, "update "+e.table+" set value = ? where key = ? and value in (?, ?)", bind(value), []byte(key), string(old), old)
}

// Delete implements [data.Engine].
func (e *engine) Delete(ctx context.Context, key string) error {
	_, err := e.change(ctx, "delete from "+e.table+" where key = ?", []byte(key))
	return err
}

// Clear implements [data.Engine].
func (e *engine) Clear(ctx context.Context) error {
	_, err := e.change(ctx, "delete from "+e.table)
	return err
}

// change runs a statement and reports whether it has changed something.
func (e *engine) change(ctx context.Context, query string, args ...any) (bool, error) {
	result, err := e.w.Exec(ctx, query, args...)
	if err != nil {
		return false, written(ctx, err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Load implements [data.Engine].
func (e *engine) Load(ctx context.Context, key string) (value []byte, ok bool, err error) {
	err = e.reads[load].QueryRowContext(ctx, []byte(key)).Scan(&value)
	if guard.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return value, err == nil, reading(ctx, err)
}

// Has implements [data.Engine].
func (e *engine) Has(ctx context.Context, key string) (ok bool, err error) {
	err = e.reads[has].QueryRowContext(ctx, []byte(key)).Scan(&ok)
	return ok, reading(ctx, err)
}

// Len implements [data.Engine]. SQLite counts the rows one by one.
func (e *engine) Len(ctx context.Context) (n int, err error) {
	err = e.reads[count].QueryRowContext(ctx).Scan(&n)
	return n, reading(ctx, err)
}

// Limits of a page: number of items, and bytes of values. A page ends with the item that reaches a
// limit.
const (
	pageItems = 256
	pageBytes = 1 << 20
)

// List implements [data.Engine]. It reads pages. While the body of the loop runs, it uses no
// connection.
func (e *engine) List(ctx context.Context, prefix string, values bool) iter.Seq2[data.Item, error] {
	return func(yield func(data.Item, error) bool) {
		from, to := []byte(cmp.Or(prefix, "\x00")), after(prefix)
		for more := true; more; {
			var page []data.Item
			var err error
			page, more, err = e.page(ctx, from, to, values)
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
				from = append([]byte(item.Key), 0) // the least key after item.Key
			}
			if err != nil {
				yield(data.Item{}, err)
				return
			}
		}
	}
}

// page reads items whose keys are at least from and less than to. It reports whether there may be
// more.
func (e *engine) page(ctx context.Context, from, to []byte, values bool) (page []data.Item, more bool, err error) {
	list := keys
	if values {
		list = items
	}
	rows, err := e.reads[list].QueryContext(ctx, from, to)
	if err != nil {
		return nil, false, reading(ctx, err)
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		var item data.Item
		if err := rows.Scan(&item.Key, &item.Value); err != nil {
			return page, false, reading(ctx, err)
		}
		page = append(page, item)
		if size += len(item.Value); size >= pageBytes || len(page) == pageItems {
			return page, true, nil
		}
	}
	return page, false, reading(ctx, rows.Err())
}

// after returns the first key behind all keys that begin with prefix.
func after(prefix string) []byte {
	key := []byte(prefix)
	for len(key) > 0 && key[len(key)-1] == 0xff {
		key = key[:len(key)-1]
	}
	if len(key) == 0 {
		return bytes.Repeat([]byte{0xff}, data.MaxKey+1)
	}
	key[len(key)-1]++
	return key
}

// Close implements [data.Engine]. If [Open] has opened the writer, Close releases it.
func (e *engine) Close() error {
	err := e.closeStatements()
	if e.owned {
		err = errors.Join(err, e.w.Close())
	}
	return err
}

func (e *engine) closeStatements() (err error) {
	for _, s := range e.reads {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}
