package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// A place is a database with the queue and the effects of its items.
type place struct {
	name    string // for people
	store   durable.Store
	effect  func(ctx context.Context, j job) error   // called in the transaction that ends the item
	effects func(ctx context.Context) ([]job, error) // in the order of commits
	close   func(remove bool) error                  // remove: removes its contents, too
}

// server is the address of a PostgreSQL; "" means a SQLite file.
func server() string { return os.Getenv("EPHEMERAL_POSTGRES_DSN") }

// newPlace names a place of this run: a schema, or a directory.
func newPlace() (string, error) {
	if server() != "" {
		return fmt.Sprint("ephemeral_demo_", os.Getpid()), nil
	}
	return os.MkdirTemp("", "ephemeral-demo-")
}

func openPlace(ctx context.Context, at string) (*place, error) {
	if server() != "" {
		return openPostgres(ctx, at)
	}
	return openSQLite(ctx, at)
}

func openSQLite(ctx context.Context, dir string) (_ *place, err error) {
	path := filepath.Join(dir, "work.db")
	w, err := sqlitewriter.Open(ctx, path, sqlitewriter.Options{})
	if err != nil {
		return nil, err
	}
	_, err = w.Exec(ctx, "create table if not exists effect (id integer primary key, key text, n integer)")
	store, err1 := sqlite.Open(ctx, w, sqlite.Options{})
	if err := errors.Join(err, err1); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &place{
		name:  "the SQLite file " + path,
		store: store,
		effect: func(ctx context.Context, j job) error {
			return w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
				if _, err := tx.Exec(ctx, "insert into effect (key, n) values (?, ?)", j.Key, j.N); err != nil {
					return err
				}
				return sqlite.Finish(ctx, tx)
			})
		},
		effects: func(ctx context.Context) (effects []job, err error) {
			rows, err := w.DB().QueryContext(ctx, "select key, n from effect order by id")
			if err != nil {
				return nil, err
			}
			defer func(rows *sql.Rows) { err = errors.Join(err, rows.Close()) }(rows)
			for rows.Next() {
				var j job
				if err := rows.Scan(&j.Key, &j.N); err != nil {
					return nil, err
				}
				effects = append(effects, j)
			}
			return effects, rows.Err()
		},
		close: func(remove bool) error {
			err := w.Close()
			if remove {
				err = errors.Join(err, os.RemoveAll(dir))
			}
			return err
		},
	}, nil
}

func openPostgres(ctx context.Context, schema string) (*place, error) {
	pool, err := pgxpool.New(ctx, server())
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, pool, postgres.Options{Schema: schema})
	if err == nil {
		_, err = pool.Exec(ctx, "create table if not exists "+schema+".effect (id bigserial primary key, key text, n int)")
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &place{
		name:  "schema " + schema + " of the PostgreSQL of EPHEMERAL_POSTGRES_DSN",
		store: store,
		effect: func(ctx context.Context, j job) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "insert into "+schema+".effect (key, n) values ($1, $2)", j.Key, j.N); err != nil {
					return err
				}
				return postgres.Finish(ctx, tx)
			})
		},
		effects: func(ctx context.Context) ([]job, error) {
			rows, err := pool.Query(ctx, "select key, n from "+schema+".effect order by id")
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowToStructByPos[job])
		},
		close: func(remove bool) (err error) {
			if remove {
				_, err = pool.Exec(context.Background(), "drop schema "+schema+" cascade")
			}
			pool.Close()
			return err
		},
	}, nil
}
