package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/postgres"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// flowRows measure flows whose steps do nothing. In a SQLite file, an operation is a flow, beside as many items as it has steps. In PostgreSQL, it is
// a flow of ten steps, beside a job of River with ten resumable steps. River stores the progress of a step in a transaction of the program, and so
// does tx=yes. With tx=no, the store groups the records of flows.
func flowRows() (rows []Row) {
	for _, workers := range []int{10, 100} {
		for steps, goal := range map[int]float64{1: 1 / 1.15, 10: 0.8} {
			rows = append(rows, Row{Name: fmt.Sprintf("op=run/steps=%d/workers=%d", steps, workers), MaxAllocs: -1, Sides: []Side{
				{"ours", 0, func() Body { return fileQueue(workers, steps, 1) }},
				{"items", 1 / goal, func() Body { return fileQueue(workers, 0, steps) }},
			}})
		}
		for name, ours := range map[string]func(*workTable) work{"no": steps(10), "yes": stepsInTx(10)} {
			if os.Getenv(PostgresDSN) != "" {
				rows = append(rows, Row{Name: fmt.Sprintf("op=run/store=postgres/tx=%s/workers=%d", name, workers), MaxAllocs: -1, Sides: []Side{
					{"ours", 0, func() Body { return drained(oursDurable(nil, workers), ours) }},
					{"river", 1 / 1.2, func() Body { return drained(throughRiver(workers), resumable(10)) }},
				}})
			}
		}
	}
	return rows
}

func drained(t *workTable, w func(*workTable) work) Body {
	t.work = w(t)
	return t.drain()
}

func steps(n int) func(*workTable) work {
	return func(*workTable) work {
		return func(ctx context.Context, _ *river.Job[parcel]) error { return doSteps(ctx, n) }
	}
}

func stepsInTx(n int) func(*workTable) work {
	return func(t *workTable) work {
		return func(ctx context.Context, _ *river.Job[parcel]) error {
			for n := range n {
				if err := postgres.Step(ctx, t.Pool, fmt.Sprint("step ", n), func(pgx.Tx) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func resumable(n int) func(*workTable) work {
	return func(t *workTable) work {
		return func(ctx context.Context, job *river.Job[parcel]) error {
			for n := range n {
				river.ResumableStep(ctx, fmt.Sprint("step ", n), nil, func(ctx context.Context) error {
					return pgx.BeginFunc(ctx, t.Pool, func(tx pgx.Tx) error {
						_, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job)
						return err
					})
				})
			}
			return nil
		}
	}
}

func doSteps(ctx context.Context, n int) error {
	for n := range n {
		if _, err := flow.Do(ctx, flow.Step[int]{Name: fmt.Sprint("step ", n), Do: func(context.Context) (int, error) { return 1, nil }}); err != nil {
			return err
		}
	}
	return nil
}

// fileQueue runs items with that number of steps, and several of them for an operation.
func fileQueue(workers, steps, items int) Body {
	var left atomic.Int64
	ended := make(chan struct{}, 1)
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "flows"))
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "flows.db"), sqlitewriter.Options{}))
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	queue := func() *durable.Queue[int] {
		return core.Must(durable.New[int, string](store, nil, func(ctx context.Context, item int) error { return doSteps(ctx, steps) }, durable.Options{MaxConcurrency: workers}))
	}
	producer := queue()
	return Body{Close: func() { producer.Close(); w.Close(); os.RemoveAll(dir) },
		Ready: func(n int) {
			for n *= items; n > 0; n -= durable.MaxBatch {
				core.Must(producer.EnqueueAll(ctx, make([]int, min(n, durable.MaxBatch))))
			}
		},
		Run: func(n int) {
			if n == 0 {
				return
			}
			left.Store(int64(n * items))
			q := queue()
			q.Sink().Subscribe(durable.SignalSucceeded, func(signals.Signal) {
				if left.Add(-1) == 0 {
					ended <- struct{}{}
				}
			})
			go q.Run(ctx)
			<-ended
			q.Close()
		}}
}
