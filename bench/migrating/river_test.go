package migrating_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/bench"
	"github.com/ephemeralgo/ephemeral/core"
)

// It needs a server: TestRiver runs it.
func Example_riverBefore() {
	ctx, pool, closePool := openPostgres()
	defer closePool()
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Visit]) error { return visit(ctx, job.Args) }))
	client := core.Must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
	}))
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { // with your own changes
		_, err := client.InsertTx(ctx, tx, Visit{"/cat"}, &river.InsertOpts{MaxAttempts: 5})
		return err
	}))
	check(client.Start(ctx))
	fmt.Println("visited", <-visited)
	check(client.Stop(ctx))
}

func Example_riverAfter() {
	ctx, w, store, closeFile := openSQLite()
	defer closeFile()
	visits := core.Must(durable.New(store, Visit.Page, visit, durable.Options{MaxConcurrency: 4, MaxAttempts: 5}))
	defer visits.Close()
	check(w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { // with your own changes
		_, err := sqlite.Enqueue(ctx, tx, visits, Visit{"/cat"})
		return err
	}))
	go visits.Run(ctx)
	fmt.Println("visited", <-visited)
	// Output: visited /cat
}

func TestRiver(t *testing.T) {
	if os.Getenv(bench.PostgresDSN) == "" {
		t.Skip("it needs " + bench.PostgresDSN)
	}
	Example_riverBefore() // it ends after the visit
}

// openPostgres opens a pool whose schema has River's tables and nothing else.
func openPostgres() (context.Context, *pgxpool.Pool, func()) {
	ctx, schema := context.Background(), fmt.Sprintf("migrating_%d", os.Getpid())
	config := core.Must(pgxpool.ParseConfig(os.Getenv(bench.PostgresDSN)))
	config.ConnConfig.RuntimeParams["search_path"] = schema
	pool := core.Must(pgxpool.NewWithConfig(ctx, config))
	core.Must(pool.Exec(ctx, "create schema "+schema))
	migrator := core.Must(rivermigrate.New(riverpgxv5.New(pool), nil))
	core.Must(migrator.Migrate(ctx, rivermigrate.DirectionUp, nil))
	return ctx, pool, func() {
		core.Must(pool.Exec(ctx, "drop schema "+schema+" cascade"))
		pool.Close()
	}
}
