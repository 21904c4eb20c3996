package sqlitewriter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ephemeralgo/ephemeral/core"
)

// background is the context of statements that no caller may interrupt.
var background = context.Background()

// maxPrepared is how many statements a connection keeps prepared.
const maxPrepared = 256

// conn is the connection that writes. One goroutine uses it at a time.
type conn struct {
	db       *sql.DB // whose only connection it is
	sql      *sql.Conn
	prepared map[string]*sql.Stmt
	theirs   atomic.Bool // statements are those of callers
	seen     bool        // a statement, by authorize
}

// openDB opens a file, whatever characters its path has. It returns without having connected.
func openDB(path, mode string, busy time.Duration, connections int) *sql.DB {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/...
	}
	query := fmt.Sprintf("mode=%s&_busy_timeout=%d&_foreign_keys=1&_time_format=sqlite&_txlock=immediate", mode, busy.Milliseconds())
	name := &url.URL{Scheme: "file", Path: slashed, RawQuery: query}
	db := sql.OpenDB(core.Must(sqlite.NewConnector(name.String()))) // the options are known
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(max(connections, 2))
	return db
}

// durable makes commits durable. fullfsync makes macOS write to the disk what it otherwise
// leaves in the disk's cache.
const durable = "&_journal_mode=wal&_synchronous=full&_pragma=fullfsync(1)&_pragma=checkpoint_fullfsync(1)"

// openConn opens the connection that writes. The lock file is held: SQLite waits for nobody
// when it changes the journal mode.
func openConn(ctx context.Context, path string, busy time.Duration) (*conn, error) {
	c := &conn{db: openDB(path, "rw"+durable, busy, 1), prepared: make(map[string]*sql.Stmt)}
	var err error
	if c.sql, err = c.db.Conn(ctx); err == nil {
		err = c.sql.Raw(func(raw any) error { return raw.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(c.authorize) })
	}
	if err != nil {
		_ = c.db.Close()
		return nil, err
	}
	return c, nil
}

// authorize is called by SQLite when it compiles a statement.
func (c *conn) authorize(action sqlite.AuthorizerActionCode, name, value, _, _ string) sqlite.AuthorizerReturnCode {
	denied := false
	c.seen = true
	switch action {
	case sqlite.AuthTransaction:
		denied = c.theirs.Load()
	case sqlite.AuthSavepoint, sqlite.AuthAttach, sqlite.AuthDetach:
		denied = true
	case sqlite.AuthPragma: // what belongs to the file or the transaction, or only reads
		denied = value != "" && name != "user_version" && name != "application_id" && name != "defer_foreign_keys"
	}
	if denied {
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

// forget closes the prepared statements.
func (c *conn) forget() {
	for _, s := range c.prepared {
		_ = s.Close() // there is nothing that could be lost
	}
	clear(c.prepared)
}

// exec runs a statement, and keeps it prepared.
func (c *conn) exec(ctx context.Context, query string, args ...any) (_ sql.Result, err error) {
	s := c.prepared[query]
	if s == nil {
		c.seen = false
		if s, err = c.sql.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		if !c.seen {
			return nil, errors.Join(errEmpty, s.Close()) // the driver has no result for it
		}
		if len(c.prepared) >= maxPrepared {
			c.forget()
		}
		c.prepared[query] = s
	}
	return s.ExecContext(ctx, args...)
}

var (
	errEmpty     = errors.New("sqlitewriter: there is no statement")
	errUndecided = errors.New("sqlitewriter: the write may be stored or not")
)

// code is SQLite's primary result code of an error; 0 if it has none.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explain makes the error that the caller of a write gets from one of a statement.
func (f *file) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || code(err) == lib.SQLITE_INTERRUPT):
		return context.Cause(ctx)
	case code(err) == lib.SQLITE_FULL:
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	case code(err) == lib.SQLITE_AUTH:
		err = fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return f.named(err)
}

// named adds the name of the file to an error.
func (f *file) named(err error) error {
	return fmt.Errorf("sqlitewriter: %q: %w", f.opts.Name, err)
}
