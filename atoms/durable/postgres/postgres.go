package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Options configure a [Store]. The zero value is the default.
type Options struct {
	// Schema is the schema of the tables; "" means "ephemeral". It has 1 to 48 letters, digits
	// and underscores and does not begin with a digit. Case matters.
	Schema string
	// SkipMigrations makes Open leave the tables as they are. Run [Migrations] yourself.
	SkipMigrations bool
	// PollOnly makes the store send and receive no notifications. Set it if PgBouncer in
	// transaction mode is between the program and the server.
	PollOnly bool
	// MaxIdle is how long a transaction may wait for its next statement after [Enqueue] or
	// [Finish]. Then the server rolls it back and closes its connection, because others wait
	// for its locks. 0 means 15 seconds. If MaxIdle is negative or longer than the setting
	// idle_in_transaction_session_timeout of the connection, that setting holds.
	MaxIdle time.Duration
}

func (o Options) resolved() (Options, error) {
	o.Schema = cmp.Or(o.Schema, "ephemeral")
	if !schemaName.MatchString(o.Schema) {
		return o, fmt.Errorf("postgres: Options.Schema must have 1 to 48 letters, digits and underscores and not begin with a digit, not %q", o.Schema)
	}
	return o, nil
}

// A Store is a [durable.Store] in a PostgreSQL database, and a [durable.Waker]. Make one with
// [Open]. It is safe for concurrent use, and for use by many processes. It needs no closing. The
// caller closes the pool after all queues.
type Store struct {
	pool  *pgxpool.Pool
	opts  Options
	in    string                  // the schema, quoted
	steps []string                // of the tables
	edit  func(sql string) string // changes statements in tests; nil: no change

	mu       sync.Mutex // guards the fields below; nothing waits under it
	notices  map[string]notice
	wakers   map[string][]*func()
	unlisten context.CancelFunc // ends the listener; nil: there is none
	hangUp   context.CancelFunc // ends its connection; nil: there is none
	deaf     time.Time          // it makes no connection before: others need it
	own      own

	known sync.Map // queue and class: it has a row
}

var (
	_ durable.Store = (*Store)(nil)
	_ durable.Waker = (*Store)(nil)
)

// Open returns the store in the database of the pool. It creates or updates the schema and the
// tables in one transaction. Processes that open the store at the same time wait for each other.
// It is no error if the tables are newer than this program. If they are older and lack indexes, running queues
// build these in the background, beside the work of all processes. With SkipMigrations, Open returns an error
// if the tables or functions are not there. If the pool does not cache statements and its connections have another
// DateStyle than ISO, or another bytea_output than hex, Open returns an error: times and data could not be read.
func Open(ctx context.Context, pool *pgxpool.Pool, opts Options) (*Store, error) {
	return openWith(ctx, pool, opts, Migrations)
}

func openWith(ctx context.Context, pool *pgxpool.Pool, opts Options, steps func(schema string) []string) (*Store, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	opts.MaxIdle = cmp.Or(opts.MaxIdle, 15*time.Second)
	s := &Store{pool: pool, opts: opts, in: pgx.Identifier{opts.Schema}.Sanitize(), steps: steps(opts.Schema), notices: map[string]notice{}, wakers: map[string][]*func(){}}
	if err := s.readable(ctx); err != nil {
		return nil, fmt.Errorf("postgres: schema %s cannot be opened: %w", opts.Schema, err)
	}
	if opts.SkipMigrations {
		var there bool
		err := pool.QueryRow(ctx, "select pg_catalog.to_regproc($1) is not null", s.in+".durable_turn_1").Scan(&there)
		if err == nil && !there {
			err = errors.New("postgres: the tables or functions are missing: run all steps of Migrations, or open it without SkipMigrations")
		}
		if err != nil {
			return nil, fmt.Errorf("postgres: schema %s cannot be opened: %w", opts.Schema, err)
		}
	} else {
		if err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, s.migrate); err != nil {
			return nil, fmt.Errorf("postgres: schema %s cannot be opened: %w", opts.Schema, err)
		}
	}
	return s, nil
}

// readable returns an error if results come as text that the driver cannot read.
func (s *Store) readable(ctx context.Context) error {
	mode := s.pool.Config().ConnConfig.DefaultQueryExecMode
	if mode != pgx.QueryExecModeExec && mode != pgx.QueryExecModeSimpleProtocol {
		return nil
	}
	var date, bytea string
	err := s.pool.QueryRow(ctx, "select pg_catalog.current_setting('DateStyle'), pg_catalog.current_setting('bytea_output')").Scan(&date, &bytea)
	if err == nil && (!strings.HasPrefix(date, "ISO") || bytea != "hex") {
		err = fmt.Errorf("postgres: the mode %s of the pool needs DateStyle ISO and bytea_output hex, not %s and %s", mode, date, bytea)
	}
	return err
}

var schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)

//go:embed migrations
var migrations embed.FS

// Migrations returns the SQL statements that create the tables of a schema: steps, from the
// oldest to the newest. Steps only add, so older programs go on working. To run them yourself,
// create the schema, then run each step once, in this order. Set SkipMigrations. A step that
// begins with the comment "-- Outside of a transaction" is one statement, which must not be in
// a transaction; the next steps need not wait for it.
func Migrations(schema string) []string {
	var steps []string
	for {
		names, _ := fs.Glob(migrations, fmt.Sprintf("migrations/%d_*.sql", len(steps)+1))
		if len(names) == 0 {
			return steps
		}
		text, _ := migrations.ReadFile(names[0])
		steps = append(steps, strings.ReplaceAll(string(text), "{s}", pgx.Identifier{schema}.Sanitize()))
	}
}

// migrate runs the steps that are missing.
func (s *Store) migrate(tx pgx.Tx) error {
	ctx := context.Background()
	if _, err := tx.Exec(ctx, "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1, 0)), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)", s.opts.Schema); err != nil {
		return err
	}
	var schema, known bool // are there
	if err := tx.QueryRow(ctx, "select pg_catalog.to_regnamespace($1) is not null, pg_catalog.to_regclass($2) is not null", s.in, s.in+".durable_migration").Scan(&schema, &known); err != nil {
		return err
	}
	if !schema { // even "if not exists" needs the right to create one
		if _, err := tx.Exec(ctx, s.sql("create schema {s}")); err != nil {
			return err
		}
	}
	if !known {
		if _, err := tx.Exec(ctx, s.sql("create table {s}.durable_migration (step int primary key, at timestamptz not null default now())")); err != nil {
			return err
		}
	}
	rows, _ := tx.Query(ctx, s.sql("select step from {s}.durable_migration"))
	done, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return err
	}
	for i, text := range s.steps {
		if slices.Contains(done, i+1) || known && indexOf.MatchString(text) {
			continue
		}
		if !known { // nobody uses the tables yet
			text = strings.ReplaceAll(text, " concurrently", "")
		}
		if _, err := tx.Exec(ctx, text); err != nil {
			return fmt.Errorf("postgres: step %d: %w", i+1, err)
		}
		if _, err := tx.Exec(ctx, s.sql("insert into {s}.durable_migration (step) values ($1)"), i+1); err != nil {
			return err
		}
	}
	return nil
}

// sql puts the schema into a statement.
// Functions of the server have the prefix pg_catalog, or another schema of search_path may have one of the same name. An unnest with
// several arguments has none: it is part of the language.
func (s *Store) sql(text string) string {
	if s.edit != nil {
		text = s.edit(text)
	}
	return strings.ReplaceAll(text, "{s}", s.in)
}

// pipeline is statements that are sent in one go.
type pipeline struct {
	*Store
	pgx.Batch
}

func (p *pipeline) do(sql string, args ...any) { p.Queue(p.sql(sql), args...) }

// rows adds a statement and calls read for each row of its result.
func (p *pipeline) rows(read func(pgx.Rows) error, sql string, args ...any) {
	p.Queue(p.sql(sql), args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := read(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Transactions of changes and of snapshots.
const (
	changes  = "begin isolation level read committed"
	snapshot = "begin isolation level repeatable read read only"
)

// maxTries is how often a transaction is tried if the server rolls it back because of a
// deadlock.
const maxTries = 5

// transact calls fill, which adds statements, and runs these in one round trip and one
// transaction. Fill is called again for each try.
func (s *Store) transact(ctx context.Context, begin string, fill func(p *pipeline)) error {
	return s.transactOn(ctx, s.pool, begin, fill)
}

func (s *Store) transactOn(ctx context.Context, pool *pgxpool.Pool, begin string, fill func(p *pipeline)) error {
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := &pipeline{Store: s}
		p.do(begin)
		if begin == snapshot {
			p.do(byIndex)
		}
		fill(p)
		p.do("commit")
		conn, err := s.acquire(ctx, pool)
		if err == nil {
			err = conn.SendBatch(ctx, &p.Batch).Close()
			conn.Release()
		}
		pg, answered := guard.As[*pgconn.PgError](err)
		answered = answered && pg.SeverityUnlocalized == "ERROR" // the server has rolled back
		switch {
		case err == nil:
			return nil
		case answered && (pg.Code == "40001" || pg.Code == "40P01") && try < maxTries:
			continue
		case answered, begin == snapshot, conn == nil, pgconn.SafeToRetry(err):
		default:
			err = fmt.Errorf("%w: %w", durable.ErrUndecided, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("postgres: %w (%w)", err, context.Cause(ctx))
		}
		return fmt.Errorf("postgres: %w", err)
	}
}

// lockKeys takes the locks of keys and of Unique ids, sorted, until the transaction ends.
func (p *pipeline) lockKeys(queue string, keys []string, uniques ...string) {
	p.do("select pg_catalog.pg_advisory_xact_lock(h) from ("+hashes+") as hashes", queue, keys, uniques)
}

// numbers turns ids into a type that all modes of the driver can send.
func numbers(ids []durable.ItemID) []int64 {
	n := make([]int64, len(ids))
	for i, id := range ids {
		n[i] = int64(id)
	}
	return n
}

// lockItems takes the locks of the keys of items, sorted, and then the locks of the items. All statements
// of the transaction use indexes.
func (p *pipeline) lockItems(queue string, ids []durable.ItemID) {
	p.do(byIndex)
	p.do("select pg_catalog.pg_advisory_xact_lock(h) from (select distinct "+keyHash+" as h from {s}.durable_item where queue = $1 and id = any($2::bigint[]) and key <> '' order by h) as hashes", queue, numbers(ids))
	p.do("select from {s}.durable_item where queue = $1 and id = any($2::bigint[]) order by id for update", queue, numbers(ids))
}

// hashes are the numbers of the locks of keys and of Unique ids, sorted.
const hashes = "select distinct h from (select " + keyHash + " as h from pg_catalog.unnest($2::text[]) as key where key <> '' union all select " +
	uniqueHash + " from pg_catalog.unnest($3::text[]) as unique_id where unique_id <> '') as h order by h"

// keyHash is the number of the lock of a key. Two keys may share one. Without uniqueHash, the lock of a Unique id, a
// call would find only when it waits that another transaction has added the id.
const (
	hashOf     = "pg_catalog.hashtextextended('{s}' || $1::text || pg_catalog.chr(1) || "
	keyHash    = hashOf + "key, 1)"
	uniqueHash = hashOf + "unique_id, 3)"
)

// micros turns a duration into microseconds for statements; duration turns it back.
func micros(d time.Duration) int64    { return d.Microseconds() }
func duration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// columns are the columns of an item that scanItem reads. The table of items is i, and the
// table of nodes is n.
const columns = common + `, n.expires, coalesce((select l.losses from {s}.durable_loss as l where l.queue = i.queue and l.item = i.id), 0), ` + note + `, coalesce(i.cost, 0)`

const common = `i.id, i.key, i.lane, i.rank, i.state, i.attempts, i.token, i.unique_id, i.enqueued, i.run_at,
	i.started, i.ended, i.node_name, i.cancel, i.err, i.failing, coalesce(i.extra, ''), i.data, i.flow`

// scanItem reads the first columns of a row into before, and the others into an item.
func scanItem(rows interface{ Scan(to ...any) error }, before ...any) (durable.Item, error) {
	var i durable.Item
	var started, ended, expires, failing *time.Time
	var place string
	err := rows.Scan(append(before, &i.ID, &i.Key, &place, &i.Rank, &i.State, &i.Attempts, &i.Token, &i.Unique, &i.Enqueued, &i.RunAt,
		&started, &ended, &i.Node, &i.Cancel, &i.Err, &failing, &i.Extra, &i.Data, &i.Flow, &expires, &i.Losses, &i.Note, &i.Cost)...)
	i.SetPlace(place)
	for to, from := range map[*time.Time]*time.Time{&i.Started: started, &i.Ended: ended, &i.Expires: expires, &i.Failing: failing} {
		if from != nil {
			*to = *from
		}
	}
	return i, err
}
