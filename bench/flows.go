package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/flow"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// flowRows measure flows in a SQLite file whose steps do nothing. An operation is a flow, beside as many items as it has steps.
func flowRows() (rows []Row) {
	for _, workers := range []int{10, 100} {
		for steps, goal := range map[int]float64{1: 1 / 1.15, 10: 0.8} {
			rows = append(rows, Row{Name: fmt.Sprintf("op=run/steps=%d/workers=%d", steps, workers), MaxAllocs: -1, Sides: []Side{
				{"ours", 0, func() Body { return fileQueue(workers, steps, 1) }},
				{"items", 1 / goal, func() Body { return fileQueue(workers, 0, steps) }},
			}})
		}
	}
	return rows
}

// fileQueue runs items with that number of steps, and several of them for an operation.
func fileQueue(workers, steps, items int) Body {
	var left atomic.Int64
	ended := make(chan struct{}, 1)
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "flows"))
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "flows.db"), sqlitewriter.Options{}))
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	queue := func() *durable.Queue[int] {
		return core.Must(durable.New[int, string](store, nil, func(ctx context.Context, item int) error {
			for n := range steps {
				if _, err := flow.Do(ctx, flow.Step[int]{Name: fmt.Sprint("step ", n), Do: func(context.Context) (int, error) { return 1, nil }}); err != nil {
					return err
				}
			}
			return nil
		}, durable.Options{MaxConcurrency: workers}))
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
