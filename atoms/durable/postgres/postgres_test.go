package postgres

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The modes are those of programs beside and behind PgBouncer. The program has no rights but those
// that the README lists. In one mode, functions of PostgreSQL have shadows.
func TestStore(t *testing.T) {
	for name, mode := range map[string]pgx.QueryExecMode{"statements are cached": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol} {
		t.Run(name, func(t *testing.T) {
			if mode != pgx.QueryExecModeCacheStatement {
				if os.Getenv("EPHEMERAL_LONG") == "" {
					t.Skip("EPHEMERAL_LONG=1 runs it")
				}
				t.Setenv("EPHEMERAL_LONG", "") // the short form has all statements
			}
			owner := open(t)
			schema := owner.opts.Schema
			exec(t, owner, strings.ReplaceAll(`revoke execute on all functions in schema {s} from public; create role ROLE; grant usage on schema {s} to ROLE;
				grant select, insert, update, delete on all tables in schema {s} to ROLE; grant usage on all sequences in schema {s} to ROLE;
				grant execute on all functions in schema {s} to ROLE`, "ROLE", schema))
			t.Cleanup(func() { exec(t, owner, "drop owned by "+schema+"; drop role "+schema) })
			configure := func(*pgxpool.Config) {}
			if mode == pgx.QueryExecModeSimpleProtocol {
				configure = shadowed(t)
			}
			durabletest.Run(t, func(t testing.TB) durable.Store {
				s, err := Open(t.Context(), connect(t, configure, func(c *pgxpool.Config) {
					c.ConnConfig.DefaultQueryExecMode = mode
					c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
						_, err := conn.Exec(ctx, "set role "+schema)
						return err
					}
				}), Options{Schema: schema, SkipMigrations: true})
				require.NoError(t, err)
				return s
			})
		})
	}
}

func TestSchemaName(t *testing.T) {
	for _, name := range []string{"a b", `x"; drop table y`, "1a", strings.Repeat("a", 49), "ä"} {
		_, err := Open(t.Context(), nil, Options{Schema: name})
		assert.ErrorContains(t, err, "postgres: Options.Schema must have", name)
	}
}

// Processes that open a new schema at once create it once.
func TestOpenAtOnce(t *testing.T) {
	schema := newSchema(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { openIn(t, schema) })
	}
	all.Wait()
}

// A program that knows fewer steps than the tables have goes on working, and does not
// undo them.
func TestNewerTables(t *testing.T) {
	s := open(t)
	exec(t, s, `alter table {s}.durable_item add column colour text not null default 'red';
		alter table {s}.durable_node add column colour text;
		insert into {s}.durable_migration (step) values (99)`)
	s = openIn(t, s.opts.Schema)
	n := node(t, s, time.Hour, 0)
	insert(t, s, "ada", "ada")
	_, err := s.Beat(t.Context(), n, "")
	require.NoError(t, err)
	ended := endAll(t, s, n, []durable.End{{ID: claim(t, s, n, 9)[0].ID, Key: "ada", Token: 1, Kind: durable.EndDone, HandOver: true}})
	assert.Equal(t, durable.Running, ended[0].Next.State)
}

// The caller may run the migrations.
func TestMigrations(t *testing.T) {
	schema := newSchema(t)
	pool := connect(t)
	for _, step := range append([]string{"create schema " + schema}, Migrations(schema)...) {
		_, err := pool.Exec(t.Context(), step)
		require.NoError(t, err)
	}
	s, err := Open(t.Context(), pool, Options{Schema: schema, SkipMigrations: true})
	require.NoError(t, err)
	insert(t, s, "ada")
}

// A context that ends while a change waits for a lock leaves it undecided; one that ended
// before changes nothing.
func TestContextEnds(t *testing.T) {
	s := open(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tx, err := s.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	require.NoError(t, s.within(t.Context(), tx, func(p *pipeline) { p.lockKeys("q", []string{"ada"}) }))
	ended := make(chan struct{})
	go func() { untilBlocked(t, s, tx, ended); cancel(why) }()
	_, err = s.Insert(ctx, "q", []durable.Insert{{Key: "ada"}})
	close(ended)
	assert.ErrorIs(t, err, durable.ErrUndecided)
	assert.ErrorIs(t, err, why)
	require.NoError(t, tx.Rollback(t.Context()))
	_, err = s.Insert(ctx, "q", []durable.Insert{{Key: "ada"}})
	assert.Equal(t, why, err)
}

// Deadlocks are rolled back by the server, so they are tried again.
func TestDeadlock(t *testing.T) {
	s := open(t)
	exec(t, s, `create sequence {s}.calls;
		create function {s}.fail() returns trigger as $$ begin
			if nextval('{s}.calls') < 3 then raise exception using errcode = '40P01'; end if;
			return new;
		end $$ language plpgsql;
		create trigger fail before insert on {s}.durable_item for each row execute function {s}.fail()`)
	insert(t, s, "ada")
}

// A process is woken up by another one, also after its connection broke. Wakes that come
// close together are one notification.
func TestWake(t *testing.T) {
	s := open(t)
	other := openIn(t, s.opts.Schema)
	woken := make(chan struct{}, 100)
	cancel := s.OnWake("q", func() { woken <- struct{}{} })
	<-woken // it listens
	other.Wake("another queue")
	for range 1000 {
		other.Wake("q")
	}
	<-woken
	exec(t, other, "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%"+s.opts.Schema+"%'")
	<-woken // it listens again
	for len(woken) > 0 {
		<-woken
	}
	other.Wake("q")
	<-woken
	assert.LessOrEqual(t, len(woken), 3)
	cancel()
	cancel()
}

// In a transaction that is not READ COMMITTED, nothing is done.
func TestIsolation(t *testing.T) {
	s := open(t)
	tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.Serializable})
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	var done []durable.Inserted
	err = s.within(t.Context(), tx, func(p *pipeline) { p.insert("q", []durable.Insert{{Key: "ada"}}, &done) })
	assert.ErrorIs(t, err, ErrIsolation)
	assert.Empty(t, done)
}

// A process stops in a transaction with the lock of a key. Others do not wait for ever. Settings
// of the connection that are shorter stay.
func TestIdleTransactions(t *testing.T) {
	begin := func(configured string, span time.Duration) (s *Store, tx pgx.Tx, setting string) {
		s = open(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[maxIdle] = configured })
		s.opts.MaxIdle = span
		tx, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.within(t.Context(), tx, func(p *pipeline) { p.lockKeys("q", []string{"ada"}) }))
		require.NoError(t, tx.QueryRow(t.Context(), "select current_setting($1)", maxIdle).Scan(&setting))
		return s, tx, setting
	}
	s, stopped, _ := begin("1h", 50*time.Millisecond)
	insert(t, s, "ada")
	assert.Error(t, stopped.Commit(t.Context()))
	for _, c := range []struct {
		configured, want string
		span             time.Duration
	}{{"0", "15s", open(t).opts.MaxIdle}, {"5s", "5s", 15 * time.Second}, {"0", "0", -1}} {
		_, tx, setting := begin(c.configured, c.span)
		assert.Equal(t, c.want, setting)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

// An item that is enqueued in a transaction is there when that commits. An effect and the end
// of its item become so together; when the claim is lost, neither does.
func TestTransactionsOfTheCaller(t *testing.T) {
	s := open(t)
	exec(t, s, "create table {s}.shipment (item bigint)")
	ctx := t.Context()
	fail := errors.New("after the commit")
	var late bool
	var fenced atomic.Bool
	q := queue(t, s, func(ctx context.Context, item string) error {
		if fenced.Load() {
			return fail // somebody finds the lost item, and the test may be over
		}
		tx, err := s.pool.Begin(ctx)
		require.NoError(t, err)
		defer tx.Rollback(context.Background())
		claim := durable.ClaimFrom(ctx)
		_, err = tx.Exec(ctx, s.sql("insert into {s}.shipment values ($1)"), claim.ID)
		require.NoError(t, err)
		if late { // another node runs it by now
			exec(t, s, "update {s}.durable_item set token = token + 1 where id = $1", claim.ID)
		}
		if err := Finish(ctx, tx); err != nil {
			assert.ErrorIs(t, err, durable.ErrLeaseLost)
			fenced.Store(true)
			return err
		}
		require.NoError(t, tx.Commit(ctx))
		return fail
	}, durable.Options{MaxAttempts: 1, Poll: 10 * time.Millisecond})
	enqueue := func(commit bool) (id durable.ItemID) {
		tx, err := s.pool.Begin(ctx)
		require.NoError(t, err)
		id, err = Enqueue(ctx, tx, q, "Ada")
		require.NoError(t, err)
		if !commit {
			require.NoError(t, tx.Rollback(ctx))
			return id
		}
		require.NoError(t, tx.Commit(ctx))
		s.Wake(q.Name())
		return id
	}
	counts := func() (done, shipped int) {
		st, err := q.Stats(ctx)
		require.NoError(t, err)
		require.NoError(t, s.pool.QueryRow(ctx, s.sql("select count(*) from {s}.shipment")).Scan(&shipped))
		return st.Done, shipped
	}
	enqueue(false)
	enqueue(true)
	go q.Run(ctx)
	seen := make(chan struct{}, 10)
	defer q.Sink().Subscribe(durable.SignalSucceeded+","+durable.SignalFenced, func(signals.Signal) { seen <- struct{}{} })()
	<-seen
	done, shipped := counts()
	assert.Equal(t, [2]int{1, 1}, [2]int{done, shipped})
	late = true
	enqueue(true)
	<-seen
	done, shipped = counts()
	assert.Equal(t, [2]int{1, 1}, [2]int{done, shipped})
	_, err := Enqueue(ctx, nil, queue(t, durable.Memory(), nothing, durable.Options{}), "x")
	assert.ErrorContains(t, err, "not on a store of PostgreSQL")
	assert.ErrorContains(t, Finish(ctx, nil), "is for the body of an item")
}

// A role that may create no schema opens the store in a schema that it was given.
func TestOpenWithoutTheRightToCreateSchemas(t *testing.T) {
	schema, pool := newSchema(t), connect(t)
	_, err := pool.Exec(t.Context(), strings.ReplaceAll("create role ROLE; create schema ROLE authorization ROLE", "ROLE", schema))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), strings.ReplaceAll("drop owned by ROLE; drop role ROLE", "ROLE", schema))
		require.NoError(t, err)
	})
	as := func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = schema }
	insert(t, openIn(t, schema, as), "ada")
	insert(t, openIn(t, schema, as), "ada")
}

// In modes with results as text, other forms of times and data are an error at once. Other modes do not need them.
func TestFormsOfText(t *testing.T) {
	for setting, value := range map[string]string{"DateStyle": "German", "bytea_output": "escape"} {
		for mode, fails := range map[pgx.QueryExecMode]bool{pgx.QueryExecModeExec: true, pgx.QueryExecModeSimpleProtocol: true, pgx.QueryExecModeCacheStatement: false} {
			pool := connect(t, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = mode
				c.ConnConfig.RuntimeParams[setting] = value
			})
			s, err := Open(t.Context(), pool, Options{Schema: newSchema(t)})
			if fails {
				require.ErrorContains(t, err, "needs DateStyle ISO and bytea_output hex")
				require.ErrorContains(t, err, value)
				continue
			}
			require.NoError(t, err)
			insert(t, s, "ada")
			require.Len(t, claim(t, s, node(t, s, time.Hour, 0), 1), 1)
		}
	}
}
