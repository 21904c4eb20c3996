package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	gosqlite "github.com/cschleiden/go-workflows/backend/sqlite"
	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/registry"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// flowSteps is how many steps a flow has.
const flowSteps = 10

// flowRows measure flows in a SQLite file whose steps do nothing. An operation is a flow of ten steps.
func flowRows() (rows []Row) {
	for _, workers := range []int{10, 100} {
		rows = append(rows, Row{Name: fmt.Sprint("op=run/steps=10/workers=", workers), MaxAllocs: -1, Sides: []Side{
			{"ours", 0, func() Body { return oursFlows(workers) }},
			{"go-workflows", 0.5, func() Body { return goWorkflows(workers) }},
		}})
	}
	return rows
}

// A countdown is over when n bodies have ended.
type countdown struct {
	left  atomic.Int64
	ended chan struct{}
}

func (c *countdown) begin(n int) {
	c.left.Store(int64(n))
	c.ended = make(chan struct{})
	if n == 0 {
		close(c.ended)
	}
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.ended)
	}
}

func oursFlows(workers int) Body {
	ctx, dir, count := context.Background(), core.Must(os.MkdirTemp("", "flows")), &countdown{}
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "flows.db"), sqlitewriter.Options{}))
	store := core.Must(sqlite.Open(ctx, w, sqlite.Options{}))
	queue := func() *durable.Queue[int] {
		return core.Must(durable.New(store, func(int) string { return "" }, func(ctx context.Context, item int) error {
			for n := range flowSteps {
				if _, err := durable.FlowFrom(ctx).Do(ctx, durable.Call{Name: fmt.Sprint("step ", n), Do: func(context.Context) ([]byte, error) { return []byte("1"), nil }}); err != nil {
					return err
				}
			}
			return nil
		}, durable.Options{MaxConcurrency: workers}))
	}
	producer := queue()
	return Body{Close: func() { producer.Close(); w.Close(); os.RemoveAll(dir) },
		Ready: func(n int) {
			for ; n > 0; n -= durable.MaxBatch {
				core.Must(producer.EnqueueAll(ctx, make([]int, min(n, durable.MaxBatch))))
			}
		},
		Run: func(n int) {
			count.begin(n)
			q := queue()
			q.Sink().Subscribe(durable.SignalSucceeded, func(signals.Signal) { count.one() })
			go q.Run(ctx)
			<-count.ended
			q.Close()
		}}
}

// goWorkflows polls more often than by default (200 ms), and has a place for all workflows in its cache.
func goWorkflows(workers int) Body {
	ctx, dir, count := context.Background(), core.Must(os.MkdirTemp("", "flows")), &countdown{}
	b := gosqlite.NewSqliteBackend(filepath.Join(dir, "flows.db"), gosqlite.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler))))
	body := func(ctx workflow.Context) error {
		for range flowSteps {
			if _, err := workflow.ExecuteActivity[int](ctx, workflow.DefaultActivityOptions, goStep).Get(ctx); err != nil {
				return err
			}
		}
		count.one()
		return nil
	}
	return Body{Close: func() { b.Close(); os.RemoveAll(dir) },
		Ready: func(n int) {
			for id := range n {
				core.Must(client.New(b).CreateWorkflowInstance(ctx, client.WorkflowInstanceOptions{InstanceID: fmt.Sprint(time.Now().UnixNano(), id)}, "body"))
			}
		},
		Run: func(n int) {
			count.begin(n)
			opts := worker.DefaultOptions
			opts.WorkflowPollingInterval, opts.ActivityPollingInterval = time.Millisecond, time.Millisecond
			opts.MaxParallelWorkflowTasks, opts.MaxParallelActivityTasks, opts.WorkflowExecutorCacheSize = workers, workers, 1<<20
			w := worker.New(b, &opts)
			check(w.RegisterWorkflow(body, registry.WithName("body")))
			check(w.RegisterActivity(goStep))
			run, stop := context.WithCancel(ctx)
			check(w.Start(run))
			<-count.ended
			stop()
			check(w.WaitForCompletion())
		}}
}

func goStep(context.Context) (int, error) { return 1, nil }
