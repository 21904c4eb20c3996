package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

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

// A Mail is an item of another kind.
type Mail struct{ To string }

func (Mail) Kind() string              { return "mail" } // for River
func (m Mail) Address() string         { return m.To }   // the key
func send(context.Context, Mail) error { return nil }

// It needs a server: TestRiver runs it.
func Example_riverBefore() {
	ctx, pool, closePool := openPostgres()
	defer closePool()
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Visit]) error {
		switch err := visit(ctx, job.Args); {
		case errors.Is(err, errGone):
			return river.JobCancel(err)
		case errors.Is(err, errBusy):
			return river.JobSnooze(time.Minute)
		default:
			return err
		}
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Mail]) error { return send(ctx, job.Args) }))
	client := core.Must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
	}))
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { // with your own changes
		_, err := client.InsertTx(ctx, tx, Visit{"/cat"}, &river.InsertOpts{
			MaxAttempts: 5, ScheduledAt: time.Now(), Metadata: []byte(`{"by": "import"}`), UniqueOpts: river.UniqueOpts{ByArgs: true},
		})
		return err
	}))
	check(client.Start(ctx))
	fmt.Println("visited", <-visited)
	check(client.Stop(ctx))
}

func Example_riverAfter() {
	ctx, w, store, closeFile := openSQLite()
	defer closeFile()
	visits := core.Must(durable.New(store, Visit.Page, func(ctx context.Context, v Visit) error {
		switch err := visit(ctx, v); {
		case errors.Is(err, errGone):
			return durable.Cancel(err)
		case errors.Is(err, errBusy):
			return durable.Snooze(time.Minute)
		default:
			return err
		}
	}, durable.Options{Name: "visits", MaxConcurrency: 4}))
	defer visits.Close()
	mails := core.Must(durable.New(store, Mail.Address, send, durable.Options{Name: "mails", MaxConcurrency: 4}))
	defer mails.Close()
	cat := Visit{"/cat"}
	check(w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error { // with your own changes
		_, err := sqlite.Enqueue(ctx, tx, visits.With(durable.ItemOptions{
			MaxAttempts: 5, RunAt: time.Now(), Metadata: map[string]string{"by": "import"}, Unique: durable.UniqueBy(cat),
		}), cat)
		return err
	}))
	go durable.Run(ctx, visits, mails)
	fmt.Println("visited", <-visited)
	check(core.Shutdown(ctx, visits.Here(), mails.Here()))
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
