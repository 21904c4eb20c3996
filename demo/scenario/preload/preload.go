// Package preload shows jobs that are queued first and start together, when a signal says
// so.
package preload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario queues 1000 jobs, of which none starts before batch.ready.
var Scenario = scenario.Scenario{
	Name:  "preload",
	Title: "Preload and trigger: queue a batch, start it by a signal",
	Run:   run,
}

const (
	jobs     = 1000
	pause    = 170 * time.Millisecond // pause between the last job and batch.ready
	failing  = 0.02                   // share of the jobs that fail
	shortest = 3 * time.Millisecond
	longest  = 9 * time.Millisecond
	every    = jobs / 5
)

type job struct {
	takes time.Duration
	fails bool
}

func run(ctx context.Context, s *scenario.Screen) error {
	done, err := progress.New(s.Sink, "batch", jobs, progress.Options{Every: every})
	if err != nil {
		return err
	}
	defer done.Done()
	defer progress.Reports.Subscribe(s.Sink, func(_ signals.Signal, r progress.Report) {
		s.Printf("%d of %d jobs are done", r.Current, r.Total)
	})()

	batch, err := core.NewCoordinator(func(ctx context.Context, j job) error {
		select {
		case <-time.After(j.takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		done.Add(1)
		if j.fails {
			return errors.New("job failed")
		}
		return nil
	}, core.Options{
		Name:           "batch",
		Sink:           s.Sink,
		MaxConcurrency: 4,
		MaxQueued:      jobs,
		DeferOn:        "batch.loading", // no job starts while this is the newer signal
		ResumeOn:       "batch.ready",   // jobs may start when this is the newer signal
		MaxDefer:       -1,              // wait for ResumeOn, however long loading takes
	})
	if err != nil {
		return err
	}
	defer batch.Close()

	s.Sink.Raise("batch.loading")
	defer s.Sink.Retract("batch.*")
	chance := rand.New(rand.NewPCG(16, 0)) // a fixed sequence, so that each run is the same
	var first core.OperationID
	for range jobs {
		takes := shortest + time.Duration(chance.Int64N(int64(longest-shortest)))
		id, err := batch.Enqueue(ctx, job{takes: takes, fails: chance.Float64() < failing})
		if err != nil {
			return err
		}
		if first == 0 {
			first = id
		}
	}
	s.Printf("%d jobs are queued; about %.0f %% will fail (a fixed sequence)", jobs, 100*failing)
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := batch.Stats()
	started := before.Enqueued - uint64(before.Pending)
	s.Printf("%v later %d have started", pause, started)
	if why, _ := batch.Explain(first); len(why.Reasons) > 0 {
		s.Printf("operation %v waits because of %s", first, why.Reasons[0].Signal.Name)
	}
	if started > 0 {
		return fmt.Errorf("preload: %d jobs started before batch.ready", started)
	}

	begin := time.Now()
	s.Sink.Raise("batch.ready")
	s.Printf("batch.ready: they start, %d at once", before.Limit)
	if err := batch.Drain(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	s.Sink.Raise("batch.complete")
	end := batch.Stats()
	s.Takeaway("%d waited %v, %d started; after batch.ready %d ok, %d failed in %v",
		before.Pending, pause, started, end.Succeeded, end.Failed, took.Round(100*time.Millisecond))
	return nil
}
