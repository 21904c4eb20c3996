package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// PostgresDSN is the environment variable with the address of the server for the group
// durable.
const PostgresDSN = "EPHEMERAL_POSTGRES_DSN"

const (
	enqueuers = 8
	handBatch = 50
)

// durableRows measure items in PostgreSQL whose bodies do nothing. Rows with op=run measure
// the start of a queue, the run of stored items, and its stop.
func durableRows() []Row {
	if os.Getenv(PostgresDSN) == "" {
		return nil
	}
	cold := func(p parcel) string { return p.Customer }
	hot := func(parcel) string { return "hot" }
	rows := []Row{
		{Name: "op=enqueue/keys=cold", MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return oursDurable(cold, 1).enqueue() }},
			{"by-hand", 2.2, func() Body { return byHand(1).enqueue() }},
			{"river", 0.8, func() Body { return throughRiver(1).enqueue() }},
		}},
	}
	goals := map[int]float64{1: 0.45, 10: 0.6, 100: 0.7, 500: 0.7} // beside River
	for _, workers := range []int{1, 10, 100, 500} {
		batch, goal := min(workers, handBatch), 0.0
		if workers == 500 {
			goal = 1 / 0.7
		}
		rows = append(rows, Row{Name: fmt.Sprintf("op=run/keys=cold/workers=%d", workers), MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return oursDurable(cold, workers).drain() }},
			{"by-hand", goal, func() Body { return byHand(batch).drain() }},
			{"river", goals[workers], func() Body { return throughRiver(workers).drain() }},
		}})
	}
	for _, workers := range []int{1, 100} {
		rows = append(rows, Row{Name: fmt.Sprintf("op=run/keys=hot/workers=%d", workers), MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return oursDurable(hot, workers).drain() }},
			{"by-hand-no-order", 0, func() Body { return byHand(1).drain() }},
		}})
	}
	million := core.Rate{PerSecond: 1e6, Burst: 1e6}
	for name, c := range map[string]struct {
		goal       float64
		rate, cost core.Rate
	}{"none": {1.05, core.Rate{}, core.Rate{}}, "one": {1.15, million, core.Rate{}}, "one-and-cost": {1.25, million, million}} {
		rows = append(rows, Row{Name: "op=run/class=yes/workers=100/rate=" + name, MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body {
				return oursDurable(cold, 100, durable.Class{Name: "class", Rate: c.rate, CostRate: c.cost}).drain()
			}},
			{"ours-without-class", c.goal, func() Body { return oursDurable(cold, 100).drain() }},
		}})
	}
	return rows
}

// Written returns the number of writing transactions in the cluster, and the bytes of its
// WAL.
func Written() (commits, wal float64) {
	ctx := context.Background()
	conn := core.Must(pgx.Connect(ctx, os.Getenv(PostgresDSN)))
	defer conn.Close(ctx)
	const counters = "select pg_snapshot_xmax(pg_current_snapshot())::text::float8, (pg_current_wal_insert_lsn() - '0/0')::float8"
	check(conn.QueryRow(ctx, counters).Scan(&commits, &wal))
	return commits, wal
}

// parcel is an item.
type parcel struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}

func (parcel) Kind() string { return "parcel" } // for River

var parcels atomic.Int64

func newParcel() parcel {
	return parcel{fmt.Sprint("customer-", parcels.Add(1)), "some sixty bytes that are the same for all of the items"}
}

func newParcels(n int) []parcel {
	list := make([]parcel, n)
	for i := range list {
		list[i] = newParcel()
	}
	return list
}

// A workTable is a queue in its own schema.
type workTable struct {
	*pgxpool.Pool
	schema string
	insert func([]parcel) error // one transaction
	run    func(n int)          // runs and ends n items
	serve  func() (stop func()) // runs items until stop is called
	began  func(parcel)         // called by bodies, if it is not nil
	work   work                 // the same; job is nil in our bodies
	close  func()
}

type work func(ctx context.Context, job *river.Job[parcel]) error

func (t *workTable) body(ctx context.Context, p parcel, job *river.Job[parcel]) error {
	if t.began != nil {
		t.began(p)
	}
	if t.work != nil {
		return t.work(ctx, job)
	}
	return nil
}

func openWorkTable() *workTable {
	config := core.Must(pgxpool.ParseConfig(os.Getenv(PostgresDSN)))
	config.MaxConns = 16
	t := &workTable{Pool: core.Must(pgxpool.NewWithConfig(context.Background(), config)), schema: fmt.Sprintf("bench_%d_%d", os.Getpid(), parcels.Add(1)), close: func() {}}
	t.exec("create schema " + t.schema)
	return t
}

func (t *workTable) exec(sql string, args ...any) {
	core.Must(t.Exec(context.Background(), sql, args...))
}

func (t *workTable) done() {
	t.close()
	t.exec("drop schema " + t.schema + " cascade")
	t.Close()
}

func (t *workTable) enqueue() Body {
	return Body{Close: t.done, Run: func(n int) {
		spread(enqueuers, n, func(share int) {
			for range share {
				check(t.insert(newParcels(1)))
			}
		})
	}}
}

func (t *workTable) drain() Body {
	return Body{Close: t.done, Run: t.run, Ready: func(n int) {
		for ; n > 0; n -= durable.MaxBatch {
			check(t.insert(newParcels(min(n, durable.MaxBatch))))
		}
		var tables string // of other schemas, some may be busy
		check(t.QueryRow(context.Background(), "select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_tables where schemaname = $1", t.schema).Scan(&tables))
		t.exec("vacuum analyze " + tables)
	}}
}

func oursDurable(key func(parcel) string, slots int, classes ...durable.Class) *workTable {
	t, ctx := openWorkTable(), context.Background()
	store := core.Must(postgres.Open(ctx, t.Pool, postgres.Options{Schema: t.schema}))
	queue := func() *durable.Queue[parcel] {
		return core.Must(durable.New(store, key, func(ctx context.Context, p parcel) error { return t.body(ctx, p, nil) }, durable.Options{MaxConcurrency: slots, Classes: classes}))
	}
	producer := queue()
	if len(classes) > 0 {
		producer = producer.Class(classes[0].Name).Cost(1)
	}
	t.insert = func(some []parcel) (err error) {
		if len(some) == 1 {
			_, err = producer.Enqueue(ctx, some[0])
		} else {
			_, err = producer.EnqueueAll(ctx, some)
		}
		return err
	}
	t.close = func() { producer.Close() }
	t.serve = func() func() {
		q := queue()
		go q.Run(ctx)
		return func() { q.Close() }
	}
	t.run = func(n int) {
		q, left, ended := queue(), atomic.Int64{}, make(chan struct{}, 1)
		left.Store(int64(n))
		q.Sink().Subscribe(durable.SignalSucceeded, func(signals.Signal) {
			if left.Add(-1) == 0 {
				ended <- struct{}{}
			}
		})
		if n > 0 {
			go q.Run(ctx)
			<-ended
		}
		q.Close()
	}
	return t
}

// byHand is the code that a program would write itself: without order, retries and limits. A
// claim lives as long as its transaction.
func byHand(batch int) *workTable {
	t, ctx := openWorkTable(), context.Background()
	t.exec("create table " + t.schema + ".hand (id bigserial primary key, state smallint not null default 0, run_at timestamptz not null default now(), data jsonb not null)")
	t.exec("create index on " + t.schema + ".hand (run_at, id) where state = 0")
	t.insert = func(some []parcel) error {
		_, err := t.Exec(ctx, "insert into "+t.schema+".hand (data) select unnest($1::jsonb[])", some)
		return err
	}
	claim := "update " + t.schema + ".hand set state = 1 where id in (select id from " + t.schema +
		".hand where state = 0 and run_at <= now() order by run_at, id limit $1 for update skip locked) returning id, data"
	t.run = func(n int) {
		for n > 0 {
			check(pgx.BeginFunc(ctx, t.Pool, func(tx pgx.Tx) error {
				rows := core.Must(tx.Query(ctx, claim, batch))
				ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id int64, err error) {
					return id, row.Scan(&id, new(parcel))
				})
				check(err)
				n -= len(ids)
				_, err = tx.Exec(ctx, "update "+t.schema+".hand set state = 2 where id = any($1)", ids)
				return err
			}))
		}
	}
	return t
}

func throughRiver(slots int) *workTable {
	t, ctx := openWorkTable(), context.Background()
	driver := riverpgxv5.New(t.Pool)
	core.Must(core.Must(rivermigrate.New(driver, &rivermigrate.Config{Schema: t.schema})).Migrate(ctx, rivermigrate.DirectionUp, nil))
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[parcel]) error { return t.body(ctx, job.Args, job) }))
	client := core.Must(river.NewClient(driver, &river.Config{
		Schema: t.schema, Workers: workers, Logger: slog.New(slog.DiscardHandler), FetchCooldown: time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}},
	}))
	t.serve = func() func() {
		check(client.Start(ctx))
		return func() { check(client.Stop(ctx)) }
	}
	t.insert = func(some []parcel) error {
		if len(some) == 1 {
			_, err := client.Insert(ctx, some[0], nil)
			return err
		}
		var list []river.InsertManyParams
		for _, p := range some {
			list = append(list, river.InsertManyParams{Args: p})
		}
		_, err := client.InsertManyFast(ctx, list)
		return err
	}
	t.run = func(n int) {
		events, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: n + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
		defer cancel()
		check(client.Start(ctx))
		for range n {
			<-events
		}
		check(client.Stop(ctx))
	}
	return t
}
