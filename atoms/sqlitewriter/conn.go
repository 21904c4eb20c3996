package sqlitewriter

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// background is the context of statements that no caller may interrupt.
var background = context.Background()

// maxPrepared is how many statements a connection keeps prepared.
const maxPrepared = 256

// conn is the connection that writes. One goroutine uses it at a time.
type conn struct {
	db       *sql.DB // whose only connection it is
	sql      *sql.Conn
	prepared map[prepared]*sql.Stmt
	own      bool // the statement is the writer's, so it may control the transaction
}

// prepared is a statement, of the writer or of a caller: a "commit" of a caller is refused.
type prepared struct {
	query string
	own   bool
}

// dsn is the name by which the driver opens a file, whatever characters its path has.
func dsn(path, mode string, busy time.Duration) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/...
	}
	query := fmt.Sprintf("mode=%s&_busy_timeout=%d&_foreign_keys=1&_time_format=sqlite", mode, busy.Milliseconds())
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
	db.SetMaxIdleConns(connections)
	return db, nil
}

// openConn opens the connection that writes. The lock file is held: SQLite waits for
// nobody when it changes the journal mode.
func openConn(ctx context.Context, path string, busy time.Duration) (*conn, error) {
	db, err := openDB(path, "rw", busy, 1)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, prepared: make(map[prepared]*sql.Stmt)}
	if c.sql, err = db.Conn(ctx); err == nil {
		err = c.prepare(ctx)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// prepare makes commits durable, and refuses statements that would spoil that.
func (c *conn) prepare(ctx context.Context) error {
	var mode string
	if err := c.sql.QueryRowContext(ctx, "pragma journal_mode=wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("sqlitewriter: the journal mode is %s, but must be wal, which the file system may not support", mode)
	}
	// fullfsync makes macOS write to the disk what it otherwise leaves in the disk's cache.
	if _, err := c.sql.ExecContext(ctx, "pragma synchronous=full; pragma fullfsync=1; pragma checkpoint_fullfsync=1"); err != nil {
		return err
	}
	return c.sql.Raw(func(raw any) error {
		return raw.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(c.authorize)
	})
}

// authorize is called by SQLite when it compiles a statement.
func (c *conn) authorize(action sqlite.AuthorizerActionCode, name, value, _, _ string) sqlite.AuthorizerReturnCode {
	allowed := true
	switch action {
	case sqlite.AuthTransaction, sqlite.AuthSavepoint:
		allowed = c.own
	case sqlite.AuthAttach, sqlite.AuthDetach:
		allowed = false
	case sqlite.AuthPragma: // what belongs to the file or the transaction, or only reads
		switch strings.ToLower(name) {
		case "user_version", "application_id", "defer_foreign_keys":
		default:
			allowed = value == "" || c.own
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
	_ = c.db.Close()
}

// forget closes the prepared statements.
func (c *conn) forget() {
	for _, s := range c.prepared {
		_ = s.Close() // there is nothing that could be lost
	}
	clear(c.prepared)
}

// stmt returns the prepared form of a statement.
func (c *conn) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	key := prepared{query, c.own}
	if s := c.prepared[key]; s != nil {
		return s, nil
	}
	if isEmpty(query) {
		return nil, errEmpty
	}
	s, err := c.sql.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(c.prepared) >= maxPrepared {
		c.forget()
	}
	c.prepared[key] = s
	return s, nil
}

// errEmpty is the error of a text without a statement, for which the driver has no result.
var errEmpty = errors.New("sqlitewriter: there is no statement")

// isEmpty reports whether a text has nothing but blanks and comments.
func isEmpty(query string) bool {
	query, _, _ = strings.Cut(query, "\x00") // where SQLite stops
	for {
		query = strings.TrimLeft(query, " \t\n\v\f\r;\ufeff")
		switch {
		case strings.HasPrefix(query, "--"):
			_, query, _ = strings.Cut(query, "\n")
		case strings.HasPrefix(query, "/*"):
			_, query, _ = strings.Cut(query[2:], "*/")
		default:
			return query == ""
		}
	}
}

// exec runs a statement.
func (c *conn) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// control runs a statement that controls the transaction.
func (c *conn) control(query string) error {
	c.own = true
	defer func() { c.own = false }()
	_, err := c.exec(background, query)
	return err
}

func (c *conn) begin() error    { return c.control("begin immediate") }
func (c *conn) commit() error   { return c.control("commit") }
func (c *conn) rollback() error { return c.control("rollback") }

// run runs the statements of an item.
func (c *conn) run(it *item) error {
	ctx := it.ctx
	if ctx.Done() == nil {
		ctx = background // the driver asks for less
	}
	it.results = it.results[:0]
	for _, s := range it.stmts {
		r, err := c.exec(ctx, s.SQL, s.Args...)
		if err != nil {
			return err
		}
		it.results = append(it.results, r)
	}
	return nil
}

// broken reports whether a connection should not be used again after an error.
func broken(err error) bool {
	switch code(err) {
	case lib.SQLITE_IOERR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM, lib.SQLITE_MISUSE, lib.SQLITE_PROTOCOL:
		return true
	}
	return errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn)
}
