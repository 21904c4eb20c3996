package filepipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// A store is the database: the table files describes the images that this run found, and nothing else. It is one
// connection, for one writer at a time. Every change is its own transaction, and survives the death of the process.
type store struct {
	db       *sql.DB
	conn     *sql.Conn // the only connection: exclusive locking and the temporary table belong to it
	prepared map[string]*sql.Stmt
}

// schema drops the rows of an earlier run, because a file may be gone since. The table contents has the first path
// of every hash. It is in a temporary file, which SQLite deletes by itself, because a map in memory would grow with
// the number of files.
const schema = `
	PRAGMA journal_mode = WAL;
	PRAGMA synchronous = NORMAL;
	DROP TABLE IF EXISTS main.files;
	CREATE TABLE main.files(
		path TEXT PRIMARY KEY,
		sha256 TEXT,
		format TEXT,
		width INTEGER,
		height INTEGER,
		bytes INTEGER,
		mime TEXT,
		thumb TEXT,
		duplicate_of TEXT,
		error TEXT
	) WITHOUT ROWID;
	CREATE TEMPORARY TABLE contents(sha256 TEXT PRIMARY KEY, first TEXT NOT NULL) WITHOUT ROWID;
`

// exclusive is set before the first read. So a second pipeline on the same directory fails at once, and does not mix
// its rows with ours.
const exclusive = `PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = FILE`

const (
	insertFile = `INSERT INTO files(path, sha256, format, width, height, bytes, mime, error) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`
	setThumb   = `UPDATE files SET thumb = ? WHERE path = ?`
	setError   = `UPDATE files SET error = ? WHERE path = ?`
	setFirst   = `UPDATE files SET duplicate_of = ? WHERE path = ?`

	firstOf     = `SELECT first FROM contents WHERE sha256 = ?`
	insertFirst = `INSERT INTO contents(sha256, first) VALUES(?, ?)`
	updateFirst = `UPDATE contents SET first = ? WHERE sha256 = ?`

	// settleFirsts repairs rows that were marked before the final first file of their contents
	// came.
	settleFirsts = `
		UPDATE files SET duplicate_of = contents.first FROM contents
		WHERE contents.sha256 = files.sha256 AND files.duplicate_of <> contents.first`
)

// openStore opens or creates the database and starts with an empty table.
func openStore(ctx context.Context, path string) (*store, error) {
	dsn, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	s := &store{db: db, prepared: map[string]*sql.Stmt{}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.release())
	}
	return s, nil
}

func (s *store) start(ctx context.Context) (err error) {
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	for _, script := range []string{exclusive, schema} {
		if _, err := s.conn.ExecContext(ctx, script); err != nil {
			return err
		}
	}
	for _, query := range []string{insertFile, setThumb, setError, setFirst, firstOf, insertFirst, updateFirst} {
		stmt, err := s.conn.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		s.prepared[query] = stmt
	}
	return nil
}

// dataSource makes a URI of the path. It escapes the characters that have a meaning for the driver.
func dataSource(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	abs = filepath.ToSlash(abs)
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}

// insert writes the row of a file; cause is "" unless it failed.
func (s *store) insert(ctx context.Context, f File, cause string) error {
	return s.exec(ctx, insertFile, f.Path, null(f.SHA256), null(f.Format), null(f.Width), null(f.Height),
		null(f.Bytes), null(f.MIME), null(cause))
}

func (s *store) setThumb(ctx context.Context, path, thumb string) error {
	return s.exec(ctx, setThumb, thumb, path)
}

func (s *store) setError(ctx context.Context, path, cause string) error {
	return s.exec(ctx, setError, cause, path)
}

// claim enters a path for its contents and returns the path that it duplicates, or "" if the contents are new. The
// first of equal files is the file whose path sorts lowest, in whatever order they come. If path sorts below the
// present first, they change places, and the result names the file that became the duplicate. Rows that already point
// to that file are repaired by settle.
func (s *store) claim(ctx context.Context, path, sha256 string) (d Duplicate, err error) {
	var first string
	err = s.prepared[firstOf].QueryRowContext(ctx, sha256).Scan(&first)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Duplicate{}, s.exec(ctx, insertFirst, sha256, path)
	case err != nil:
		return Duplicate{}, err
	case first < path:
		d = Duplicate{Path: path, Of: first}
	default:
		d = Duplicate{Path: first, Of: path}
		if err := s.exec(ctx, updateFirst, path, sha256); err != nil {
			return Duplicate{}, err
		}
	}
	return d, s.exec(ctx, setFirst, d.Of, d.Path)
}

// settle makes every duplicate point to the first of its contents.
func (s *store) settle(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, settleFirsts)
	return err
}

// close folds the journal into the database and releases it. It leaves one plain file, because a file in WAL mode cannot
// be read in a directory without the right to write.
func (s *store) close() error {
	_, err := s.conn.ExecContext(context.Background(), `PRAGMA journal_mode = DELETE`)
	return errors.Join(err, s.release())
}

func (s *store) release() error {
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(append(errs, s.db.Close())...)
}

func (s *store) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.prepared[query].ExecContext(ctx, args...)
	return err
}

// null turns a zero value, which means unknown, into SQL's NULL.
func null[V comparable](v V) any {
	if v == *new(V) {
		return nil
	}
	return v
}
