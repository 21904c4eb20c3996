//go:build unix

package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	lite "modernc.org/sqlite"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

// A database has the items, and what workers and triggers write.
type database struct {
	store  durable.Store
	read   *sql.DB
	exec   func(ctx context.Context, statements string) error
	change func(ctx context.Context, fn func(ctx context.Context, tx transaction) error) error
	occupy func(ctx context.Context) (release func()) // takes a connection of the program
	step   func(ctx context.Context, name, statement string, args ...any) error
	close  func()
	open   time.Duration // how long a transaction may stay so; on SQLite, it stops all others
}

// A transaction is one of a worker.
type transaction struct {
	exec    func(statement string, args ...any) error
	enqueue func(q *durable.Queue[job], j job) (durable.ItemID, error)
	finish  func() error
	signal  func(q *durable.Queue[job], key, name string, payload any, unique ...string) error
}

// open opens the database of a config.
func open(ctx context.Context, c config, migrate bool) (*database, error) {
	if c.File != "" {
		return openSQLite(ctx, c)
	}
	return openPostgres(ctx, c, migrate)
}

func openPostgres(ctx context.Context, c config, migrate bool) (*database, error) {
	options, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, err
	}
	options.ConnConfig.RuntimeParams["application_name"] = c.Name
	pool, err := pgxpool.NewWithConfig(ctx, options)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, pool, postgres.Options{Schema: storeSchema, SkipMigrations: !migrate, MaxIdle: lease})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &database{store: store, read: stdlib.OpenDBFromPool(pool), close: pool.Close, open: 2 * lease,
		exec: func(ctx context.Context, statements string) error {
			_, err := pool.Exec(ctx, statements)
			return err
		},
		change: func(ctx context.Context, fn func(ctx context.Context, tx transaction) error) error {
			raw, err := pool.Begin(ctx)
			if err != nil {
				return err
			}
			defer raw.Rollback(ctx)
			err = fn(ctx, transaction{
				exec: func(statement string, args ...any) error {
					_, err := raw.Exec(ctx, statement, args...)
					return err
				},
				enqueue: func(q *durable.Queue[job], j job) (durable.ItemID, error) { return postgres.Enqueue(ctx, raw, q, j) },
				finish:  func() error { return postgres.Finish(ctx, raw) },
				signal: func(q *durable.Queue[job], key, name string, payload any, unique ...string) error {
					return postgres.Signal(ctx, raw, q, key, name, payload, unique...)
				},
			})
			if err != nil {
				return err
			}
			if err := raw.Commit(ctx); err != nil {
				return fmt.Errorf("%w: %w", durable.ErrUndecided, err)
			}
			return nil
		},
		occupy: func(ctx context.Context) func() {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return func() {}
			}
			return conn.Release
		},
		step: func(ctx context.Context, name, statement string, args ...any) error {
			return postgres.Step(ctx, pool, name, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, statement, args...)
				return err
			})
		}}, nil
}

func openSQLite(ctx context.Context, c config) (*database, error) {
	number := int64(rand.Uint32()) << 31 // of the transaction, for triggers
	at := &atomic.Int64{}
	at.Store(number)
	for name, value := range map[string]func() any{"chaos_tx": func() any { return at.Load() }, "chaos_worker": func() any { return c.Name }, "chaos_now": func() any { return time.Now().UnixMicro() }} {
		lite.MustRegisterScalarFunction(name, 0, func(*lite.FunctionContext, []driver.Value) (driver.Value, error) { return value(), nil })
	}
	lite.RegisterConnectionHook(func(conn lite.ExecQuerierContext, _ string) error {
		conn.(lite.HookRegisterer).RegisterCommitHook(func() int32 { at.Add(1); return 0 })
		return nil
	})
	w, err := sqlitewriter.Open(ctx, c.File, sqlitewriter.Options{})
	if err != nil {
		return nil, err
	}
	store, err := sqlite.Open(ctx, w, sqlite.Options{})
	if err != nil {
		w.Close()
		return nil, err
	}
	return &database{store: store, read: w.DB(), close: func() { w.Close() }, open: lease / 5, occupy: func(context.Context) func() { return func() {} },
		exec: func(ctx context.Context, statements string) error {
			_, err := w.Exec(ctx, statements)
			return err
		},
		change: func(ctx context.Context, fn func(ctx context.Context, tx transaction) error) error {
			err := w.Tx(ctx, func(ctx context.Context, raw *sqlitewriter.Tx) error {
				return fn(ctx, transaction{
					exec: func(statement string, args ...any) error {
						_, err := raw.Exec(ctx, plain(statement), args...)
						return err
					},
					enqueue: func(q *durable.Queue[job], j job) (durable.ItemID, error) { return sqlite.Enqueue(ctx, raw, q, j) },
					finish:  func() error { return sqlite.Finish(ctx, raw) },
					signal: func(q *durable.Queue[job], key, name string, payload any, unique ...string) error {
						return sqlite.Signal(ctx, raw, q, key, name, payload, unique...)
					},
				})
			})
			if errors.Is(err, groupcommit.ErrUndecided) {
				err = fmt.Errorf("%w: %w", durable.ErrUndecided, err)
			}
			return err
		},
		step: func(ctx context.Context, name, statement string, args ...any) error {
			return sqlite.Step(ctx, w, name, func(tx *sqlitewriter.Tx) error {
				_, err := tx.Exec(ctx, plain(statement), args...)
				return err
			})
		}}, nil
}

// plain makes a statement for SQLite, which has no schemas.
func plain(statement string) string {
	return strings.NewReplacer(storeSchema+".", "", "chaos.", "chaos_", "$", "?").Replace(statement)
}

// rows reads all rows of a statement. Into returns where the columns of one go.
func rows[V any](ctx context.Context, db *sql.DB, all *[]V, statement string, into func(v *V) []any) error {
	found, err := db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	for err == nil && found.Next() {
		*all = append(*all, *new(V))
		err = found.Scan(into(&(*all)[len(*all)-1])...)
	}
	return errors.Join(err, found.Err(), found.Close())
}
