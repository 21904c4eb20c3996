package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// background is the context of statements that no caller may interrupt.
var background = context.Background()

// conn is the connection that writes. One goroutine uses it at a time.
type conn struct {
	sql      *sql.Conn
	prepared *lru.LRU[string, *sql.Stmt]
	theirs   atomic.Bool // the running statements belong to callers
	seen     bool        // authorize has seen a statement
	busy     int64       // SQLite's busy timeout in milliseconds
	log      os.FileInfo // the file PATH-wal, from the first transaction on
}

// openDB opens a file. The path may have any characters. No connection is made yet.
func openDB(path, mode string, busy time.Duration, connections int) *sql.DB {
	lock := "deferred" // a connection that only reads cannot begin a transaction that writes
	if mode == "rw" {
		lock = "immediate"
	}
	name := &url.URL{
		Scheme:   "file",
		Path:     "/" + strings.TrimPrefix(filepath.ToSlash(path), "/"), // Windows has C:/...
		RawQuery: fmt.Sprintf("mode=%s&_busy_timeout=%d&_foreign_keys=1&_time_format=sqlite&_txlock=%s", mode, busy.Milliseconds(), lock),
	}
	db := sql.OpenDB(core.Must(sqlite.NewConnector(name.String()))) // the options are valid
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(max(connections, 2))
	return db
}

// durable makes commits durable. On macOS a sync leaves data in the disk's cache; fullfsync makes
// it write the data to the disk. A log that has grown beside a long read is cut when it starts again.
const durable = "pragma journal_mode=wal; pragma synchronous=full; pragma fullfsync=1; pragma checkpoint_fullfsync=1; pragma journal_size_limit=16777216"

// connect opens the connection that writes, if there is none. The lock is held.
func (f *file) connect(ctx context.Context) error {
	if f.conn != nil {
		return nil
	}
	opened, err := f.writers.Conn(ctx)
	if err != nil {
		return err
	}
	c := &conn{sql: opened, prepared: core.Must(lru.New(lru.Options[string, *sql.Stmt]{
		Capacity: 256, TTL: -1, OnRemoved: func(_ string, s *sql.Stmt, _ lru.Reason) { _ = s.Close() },
	}))}
	exec := func(query string) error {
		return f.wait(c, func() error { _, err := opened.ExecContext(ctx, query); return err })
	}
	err = exec(durable)
	for code(err) == lib.SQLITE_BUSY && f.patience > 0 { // SQLite does not wait to change the journal mode
		if err = exec("begin exclusive; commit"); err == nil {
			err = exec(durable)
		}
	}
	if err == nil {
		err = opened.Raw(func(raw any) error { return raw.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(c.authorize) })
	}
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	f.conn, f.reopened = c, f.opened.Swap(true)
	return nil
}

// wait calls fn, in which c waits for other programs. All waits of a group of writes together take
// at most Options.BusyTimeout.
func (f *file) wait(c *conn, fn func() error) error {
	if busy := (f.patience + time.Millisecond - 1).Milliseconds(); busy != c.busy {
		if _, err := c.sql.ExecContext(background, fmt.Sprint("pragma busy_timeout=", busy)); err != nil {
			return err
		}
		c.busy = busy
	}
	defer func(begun time.Time) { f.patience = max(0, f.patience-time.Since(begun)) }(time.Now())
	return fn()
}

// check returns an error if a file is not the one that was opened.
func check(path string, opened os.FileInfo) error {
	if is, err := os.Stat(path); err != nil || !os.SameFile(is, opened) {
		return fmt.Errorf("%w: %s", ErrMoved, path)
	}
	return nil
}

// disconnect closes the connection that writes, if there is one.
func (f *file) disconnect() {
	if f.conn != nil {
		f.conn.prepared.Clear() // a connection with statements stays open
		_ = f.conn.sql.Close()
		f.conn = nil
	}
}

// harmless are the pragmas that may have a value: pragmas of the file or of the transaction, and
// pragmas that only read.
const harmless = " user_version application_id defer_foreign_keys table_info table_xinfo table_list index_info index_xinfo index_list foreign_key_list foreign_key_check integrity_check quick_check "

// authorize is called by SQLite when it compiles a statement.
func (c *conn) authorize(action sqlite.AuthorizerActionCode, name, value, _, _ string) sqlite.AuthorizerReturnCode {
	c.seen = true
	switch {
	case action == sqlite.AuthTransaction && c.theirs.Load(),
		action == sqlite.AuthSavepoint, action == sqlite.AuthAttach, action == sqlite.AuthDetach,
		action == sqlite.AuthPragma && c.theirs.Load() && strings.EqualFold(name, "wal_checkpoint"),
		action == sqlite.AuthPragma && c.theirs.Load() && value != "" && !strings.Contains(harmless, " "+strings.ToLower(name)+" "):
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

// exec runs the statements of query, and keeps them prepared.
func (c *conn) exec(ctx context.Context, query string, args ...any) (_ sql.Result, err error) {
	s, ok := c.prepared.Get(query)
	if !ok {
		c.seen = false
		if s, err = c.sql.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		if !c.seen { // the query is empty, and the driver would return no result; or it is a vacuum
			return nil, errors.Join(fmt.Errorf("sqlitewriter: %.80q is empty or cannot run in a transaction", query), s.Close())
		}
		c.prepared.Set(query, s)
	}
	return s.ExecContext(ctx, args...)
}

// code is SQLite's primary result code of an error, or 0 if the error has none.
func code(err error) int {
	if e, ok := guard.As[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explain makes the error of a write from the error of a statement.
func (f *file) explain(ctx context.Context, err error, query ...string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (guard.Is(err, ctx.Err()) || code(err) == lib.SQLITE_INTERRUPT):
		return context.Cause(ctx)
	case code(err) == lib.SQLITE_FULL:
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	case code(err) == lib.SQLITE_BUSY:
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	case code(err) == lib.SQLITE_AUTH:
		err = fmt.Errorf("%w: %.80q: %w", ErrNotAllowed, strings.Join(query, ""), err)
	}
	return f.named(err)
}

// named adds the name of the file to an error.
func (f *file) named(err error) error {
	return fmt.Errorf("sqlitewriter: %q: %w", f.opts.Name, err)
}
