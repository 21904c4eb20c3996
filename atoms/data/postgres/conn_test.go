package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// The server has rolled back after ERROR. FATAL may come after the commit.
func TestOutcomes(t *testing.T) {
	for severity, want := range map[string]outcome{"ERROR": failed, "FATAL": undecided} {
		err := fmt.Errorf("wrapped: %w", &pgconn.PgError{SeverityUnlocalized: severity, Code: "57P01"})
		assert.Equal(t, want, outcomeOf(err, true, true))
	}
}

// changes are the changes of one statement.
func changes(e *engine) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Save": func(ctx context.Context) error { return e.Save(ctx, pairs("a", "1")) },
		"Swap": func(ctx context.Context) error {
			_, err := e.Swap(ctx, "a", []byte("1"), true, []byte("1"))
			return err
		},
		"Delete": func(ctx context.Context) error { return e.Delete(ctx, "a") },
	}
}

// operations calls every method of e.
func operations(ctx context.Context, e *engine) map[string]error {
	errs := map[string]error{"Clear": e.Clear(ctx)}
	for name, change := range changes(e) {
		errs[name] = change(ctx)
	}
	_, _, errs["Load"] = e.Load(ctx, "a")
	_, errs["Has"] = e.Has(ctx, "a")
	_, errs["Len"] = e.Len(ctx)
	for _, err := range e.List(ctx, "", true) {
		errs["List"] = err
	}
	return errs
}

// While there is no server, or if a connection breaks before anything was sent, operations
// try again. A wrong address is an error at once.
func TestNothingWasSent(t *testing.T) {
	var failures atomic.Int32
	w := &wire{read: works, write: func([]byte) error {
		if failures.Add(-1) >= 0 {
			return errBroken
		}
		return nil
	}}
	f := newFixture(t, w.connect)
	e, impatient := f.open(), f.open(noRetry)
	failures.Store(3) // the present connection fails, and new ones
	require.NoError(t, e.Save(t.Context(), pairs("a", "1")))
	assert.Equal(t, []string{"a", "1"}, list(t, e.List(t.Context(), "", true)))
	failures.Store(1 << 30)
	for name, err := range operations(t.Context(), impatient) {
		assert.ErrorIs(t, err, errBroken, name)
		assert.ErrorContains(t, err, "postgres: ", name)
		assert.NotErrorIs(t, err, data.ErrUndecided, name)
	}
	failures.Store(0)
	none := connect(t, setting(t, "EPHEMERAL_POSTGRES_DSN"), func(c *pgxpool.Config) { c.ConnConfig.Database = "none" })
	_, err := newEngine(t.Context(), none, Options{RetryFor: 24 * time.Hour})
	assert.ErrorContains(t, err, "3D000")
}

// If the answer to a change is lost, the error says that it may have been made, and nothing
// is tried again. Calls that only read are tried again.
func TestAnswerIsLost(t *testing.T) {
	var answers atomic.Int32 // number of the lost answer, counted from the next statement on
	var sent atomic.Bool
	w := &wire{
		write: func([]byte) error { sent.Store(true); return nil },
		read: func() error {
			if sent.Load() && answers.Add(-1) == 0 {
				return errBroken
			}
			return nil
		},
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for _, channel := range []string{"", "channel"} {
			t.Run(fmt.Sprint(mode, channel), func(t *testing.T) {
				f := newFixture(t, w.connect, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
				e := f.open(func(o *Options) { o.Notify = channel })
				lose := func(n int) {
					operations(t.Context(), e) // the connection is there, and has prepared its statements
					sent.Store(false)
					answers.Store(int32(n))
				}
				for name, change := range changes(e) {
					lose(1)
					assert.ErrorIs(t, change(t.Context()), data.ErrUndecided, name)
				}
				lose(1)
				_, _, err := e.Load(t.Context(), "a")
				assert.NoError(t, err)
				lose(1)
				list(t, e.List(t.Context(), "", true))
				var undecided, tried int // Clear has several statements; only its commit matters
				for n := 1; answers.Load() <= 0; n++ {
					lose(n)
					if err := e.Clear(t.Context()); err != nil {
						assert.ErrorIs(t, err, data.ErrUndecided)
						undecided++
					}
					tried++
				}
				assert.Contains(t, []int{1, 2}, undecided, "the answer of the commit may come in two parts")
				assert.Greater(t, tried-undecided, 2)
			})
		}
	}
}

// Deadlocks and serialization failures are rolled back, so they are tried again.
func TestRolledBackIsTriedAgain(t *testing.T) {
	f := newFixture(t)
	e, impatient := f.open(), f.open(noRetry)
	fail := func(code string) {
		f.exec(fmt.Sprintf(`drop sequence if exists %[1]s.calls cascade;
			create sequence %[1]s.calls;
			create or replace function %[1]s.fail() returns trigger as $$ begin
				if nextval('%[1]s.calls') = 1 then raise exception using errcode = '%[2]s'; end if;
				return new;
			end $$ language plpgsql;
			create or replace trigger fail before insert on %[1]s.data for each row execute function %[1]s.fail()`, f.opts.Schema, code))
	}
	for _, code := range []string{"40001", "40P01"} {
		fail(code)
		assert.NoError(t, e.Save(t.Context(), pairs("a", "1")))
		fail(code)
		err := impatient.Save(t.Context(), pairs("a", "1"))
		assert.ErrorContains(t, err, code)
		assert.NotErrorIs(t, err, data.ErrUndecided)
	}
}

// If the context of a change ends after it was sent, it cannot be said whether it is made.
// If the context ends before, the change is not made.
func TestContextEndsWhileSaving(t *testing.T) {
	why := errors.New("enough")
	var cancel atomic.Pointer[context.CancelCauseFunc]
	w := &wire{read: works, write: func(message []byte) error {
		if message[0] == 'B' || message[0] == 'Q' { // a statement runs; it is not being prepared
			if c := cancel.Swap(nil); c != nil {
				(*c)(why)
			}
		}
		return nil
	}}
	f := newFixture(t, w.connect, func(c *pgxpool.Config) { c.MaxConns = 3 })
	e := f.open()
	require.NoError(t, e.Save(t.Context(), pairs("a", "1")))
	tx, err := f.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select from "+e.table+" for update") // so that no change ends
	require.NoError(t, err)
	for name, change := range changes(e) {
		ctx, stop := context.WithCancelCause(t.Context())
		require.NoError(t, f.pool.Ping(t.Context())) // so that there is a connection
		cancel.Store(&stop)
		err := change(ctx)
		assert.ErrorIs(t, err, data.ErrUndecided, name)
		assert.ErrorIs(t, err, why, name)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	require.NoError(t, f.pool.Ping(t.Context()))
	cancel.Store(&stop)
	for name, err := range operations(ctx, e) { // Clear is cancelled before its commit; the others do not begin
		assert.ErrorIs(t, err, why, name)
		assert.NotErrorIs(t, err, data.ErrUndecided, name)
	}
	require.NoError(t, tx.Rollback(t.Context()))
}
