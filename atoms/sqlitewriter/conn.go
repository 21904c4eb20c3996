package sqlitewriter

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
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
	own      atomic.Bool // the writer itself begins or ends a transaction
}

// dsn is the name by which the driver opens a file, whatever characters its path has.
func dsn(path, mode string, busy time.Duration) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/...
	}
	query := fmt.Sprintf("mode=%s&_busy_timeout=%d&_foreign_keys=1&_time_format=sqlite&_txlock=immediate", mode, busy.Milliseconds())
	return (&url.URL{Scheme: "file", Path: slashed, RawQuery: query}).String()
}

// openDB opens a file. It returns without having connected.
func openDB(path, mode string, busy time.Duration, connections int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(path, mode, busy))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(max(connections, 2))
	return db, nil
}

// openConn opens the connection that writes, makes its commits durable, and refuses
// statements that would spoil that. The lock file is held: SQLite waits for nobody when it
// changes the journal mode.
func openConn(ctx context.Context, path string, busy time.Duration) (c *conn, err error) {
	c = &conn{prepared: make(map[string]*sql.Stmt)}
	defer func() {
		if err != nil {
			c.close()
			c = nil
		}
	}()
	if c.db, err = openDB(path, "rw", busy, 1); err != nil {
		return c, err
	}
	if c.sql, err = c.db.Conn(ctx); err != nil {
		return c, err
	}
	var mode string
	if err := c.sql.QueryRowContext(ctx, "pragma journal_mode=wal").Scan(&mode); err != nil {
		return c, err
	}
	if mode != "wal" {
		return c, fmt.Errorf("sqlitewriter: the journal mode is %s, but must be wal, which the file system may not support", mode)
	}
	// fullfsync makes macOS write to the disk what it otherwise leaves in the disk's cache.
	if _, err := c.sql.ExecContext(ctx, "pragma synchronous=full; pragma fullfsync=1; pragma checkpoint_fullfsync=1"); err != nil {
		return c, err
	}
	return c, c.sql.Raw(func(raw any) error {
		return raw.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(c.authorize)
	})
}

// authorize is called by SQLite when it compiles a statement.
func (c *conn) authorize(action sqlite.AuthorizerActionCode, name, value, _, _ string) sqlite.AuthorizerReturnCode {
	allowed := true
	switch action {
	case sqlite.AuthTransaction:
		allowed = c.own.Load()
	case sqlite.AuthSavepoint, sqlite.AuthAttach, sqlite.AuthDetach:
		allowed = false
	case sqlite.AuthPragma: // what belongs to the file or the transaction, or only reads
		switch strings.ToLower(name) {
		case "user_version", "application_id", "defer_foreign_keys":
		default:
			allowed = value == ""
		}
	}
	if allowed {
		return sqlite.AuthorizerOK
	}
	return sqlite.AuthorizerDeny
}

// close closes the connection, also when it is broken.
func (c *conn) close() {
	c.forget()
	if c.sql != nil {
		_ = c.sql.Close()
	}
	if c.db != nil {
		_ = c.db.Close()
	}
}

// forget closes the prepared statements.
func (c *conn) forget() {
	for _, s := range c.prepared {
		_ = s.Close() // there is nothing that could be lost
	}
	clear(c.prepared)
}

// begin begins a transaction that writes.
func (c *conn) begin() (tx *sql.Tx, err error) {
	err = c.end(func() error {
		tx, err = c.sql.BeginTx(background, nil)
		return err
	})
	return tx, err
}

// end calls Commit or Rollback of a transaction.
func (c *conn) end(call func() error) error {
	c.own.Store(true)
	defer c.own.Store(false)
	return call()
}

// exec runs a statement, and keeps it prepared.
func (c *conn) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s := c.prepared[query]
	if s == nil {
		var err error
		if s, err = c.sql.PrepareContext(ctx, query); err != nil {
			return nil, err
		}
		if len(c.prepared) >= maxPrepared {
			c.forget()
		}
		c.prepared[query] = s
	}
	return checked(s.ExecContext(ctx, args...))
}

// checked makes a result that panics, which is that of a text without a statement, an error.
func checked(r sql.Result, err error) (_ sql.Result, empty error) {
	if err != nil {
		return nil, err
	}
	defer func() {
		if recover() != nil {
			empty = errEmpty
		}
	}()
	_, err = r.RowsAffected()
	return r, err
}
