//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// beScheduler is an environment variable with the directory of the files. A test binary with
// this variable is one of the processes.
const beScheduler = "EPHEMERAL_TEST_TICKS"

// tickSchedules are the schedules of all processes. Due says the same as Cron, for seconds
// since 1970.
var tickSchedules = []struct {
	name, cron string
	due        func(second int64) bool
}{
	{"second", "* * * * * *", func(int64) bool { return true }},
	{"every", "@every 2s", func(second int64) bool { return second%2 == 0 }},
	{"some", "1-59/5 * * * * *", func(second int64) bool { return second%60%5 == 1 }},
}

// ticking is one process: it hands ticks to a queue that all processes share, and runs items of the queue.
type ticking struct {
	w     *sqlitewriter.Writer
	store *sqlite.Store
	queue *durable.Queue[scheduledtasks.Task]
	runs  *os.File // a line for each run: the tick, and the token of the claim
}

func openTicking(dir string) *ticking {
	ctx := context.Background()
	p := &ticking{w: core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "ticks.db"), sqlitewriter.Options{}))}
	core.Must(p.w.Exec(ctx, "create table if not exists effect (schedule text, run text)"))
	p.store = core.Must(sqlite.Open(ctx, p.w, sqlite.Options{}))
	p.runs = core.Must(os.OpenFile(filepath.Join(dir, "runs"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600))
	p.queue = core.Must(durable.New(p.store, func(task scheduledtasks.Task) string { return task.Name }, p.run,
		durable.Options{Name: "ticks", MaxAttempts: -1, Lease: time.Second}))
	return p
}

// run writes a line, which stays whatever happens then. It writes a row in the transaction
// that ends the item.
func (p *ticking) run(ctx context.Context, task scheduledtasks.Task) error {
	run := fmt.Sprintf("%s %d\n", task.ID(), durable.ClaimFrom(ctx).Token)
	core.Must(p.runs.WriteString(run))
	time.Sleep(rand.N(200 * time.Millisecond))       // some processes are killed here: their items run again
	defer time.Sleep(rand.N(200 * time.Millisecond)) // or here, after the item's end
	return p.w.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		core.Must(tx.Exec(ctx, "insert into effect values (?, ?)", task.Name, run))
		return sqlite.Finish(ctx, tx)
	})
}

// schedule starts the schedules, which go on from the last ticks of the store. If a process cannot hand
// over a tick, it ends before it hands over a later tick. So other processes hand over this tick.
func (p *ticking) schedule() *scheduledtasks.Scheduler {
	enqueue := scheduledtasks.TargetFunc(func(ctx context.Context, task scheduledtasks.Task) error {
		if _, err := p.queue.With(durable.ItemOptions{Unique: task.ID()}).Enqueue(ctx, task); err != nil {
			log.Fatal(err)
		}
		return nil
	})
	var definitions []scheduledtasks.Definition
	for _, s := range tickSchedules {
		definitions = append(definitions, scheduledtasks.Definition{Name: s.name, Cron: s.cron, Signal: "tick"})
	}
	opts := scheduledtasks.Options{Sink: p.queue.Sink(), Store: p.store, Missed: 1000, Timeout: -1}
	return core.Must(scheduledtasks.New(definitions, enqueue, opts))
}

// Five processes run the same schedules on one file and are killed at random, and all at once from time to time.
// Each tick becomes one item, in the order of the ticks, and has its effect once.
func TestTicksExactlyOnce(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(beScheduler); dir != "" {
		p := openTicking(dir)
		p.queue.Sink().Subscribe(durable.SignalSucceeded, func(signals.Signal) { fmt.Println("item done") })
		p.schedule()
		panic(p.queue.Run(context.Background()))
	}
	rounds, each := 1, 1500*time.Millisecond // at the end of a round no process is alive
	if os.Getenv("EPHEMERAL_LONG") != "" {
		rounds, each = 4, 3*time.Second
	}
	dir, begin := t.TempDir(), time.Now().Add(-10*time.Second).Truncate(time.Second)
	p := openTicking(dir)
	defer p.runs.Close()
	defer p.w.Close()
	defer p.queue.Close()
	for _, s := range tickSchedules { // the processes ran until 10 seconds ago
		if err := p.store.MarkTick(t.Context(), s.name, begin); err != nil {
			t.Fatal(err)
		}
	}
	var kills atomic.Int64
	for range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), each)
		var slots sync.WaitGroup
		for range 5 {
			slots.Go(func() {
				for ; ctx.Err() == nil && !t.Failed(); kills.Add(1) {
					killScheduler(ctx, t, dir)
				}
			})
		}
		slots.Wait()
		cancel()
	}
	end := time.Now().Unix()
	p.drain(t, end)
	ticks, runs := p.check(t, begin.Unix(), end)
	t.Logf("%d ticks, %d kills, %d runs", ticks, kills.Load(), runs)
}

// killScheduler starts a process and kills it: at a random time after its first item, at a random time after its
// start, or when ctx ends.
func killScheduler(ctx context.Context, t *testing.T, dir string) {
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestTicksExactlyOnce$", "-test.timeout=1m")
	child.Env = append(os.Environ(), beScheduler+"="+dir)
	child.Stderr = os.Stderr
	out := core.Must(child.StdoutPipe())
	if err := child.Start(); err != nil {
		coretest.Check(t, ctx.Err() != nil, "%v", err)
		return
	}
	lines := bufio.NewReader(out)
	if rand.N(4) > 0 {
		_, _ = lines.ReadString('\n')
	}
	time.AfterFunc(rand.N(2*time.Second), func() { _ = child.Process.Kill() })
	_, _ = io.Copy(io.Discard, lines)
	if _ = child.Wait(); child.ProcessState.Exited() {
		t.Errorf("a process has ended by itself: %v", child.ProcessState)
	}
}

// drain hands over the ticks that have come until end, and runs all items.
func (p *ticking) drain(t *testing.T, end int64) {
	progress, ended := make(chan struct{}, 1), make(chan error)
	p.queue.Sink().Subscribe("durable.*,schedule.*", func(signals.Signal) {
		select {
		case progress <- struct{}{}:
		default:
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- p.queue.Run(ctx) }()
	tasks := p.schedule()
	for slices.ContainsFunc(tasks.Schedules(), func(s scheduledtasks.Schedule) bool { return s.Next.Unix() <= end }) {
		<-progress
	}
	err := tasks.Drain(ctx)
	for s := core.Must(p.queue.Stats(ctx)); s.Done+s.Dead < s.Items; s = core.Must(p.queue.Stats(ctx)) {
		<-progress
	}
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
}

// check compares items, runs and effects with the ticks that the expressions name, and counts ticks and runs.
func (p *ticking) check(t *testing.T, begin, end int64) (ticks, runs int) {
	last := map[string]int{} // the last claim of each tick
	for line := range bytes.Lines(core.Must(os.ReadFile(p.runs.Name()))) {
		var id string
		var token int
		core.Must(fmt.Sscan(string(line), &id, &token))
		last[id] = max(last[id], token)
		runs++
	}
	for _, s := range tickSchedules {
		var want, items []string
		var wantEffects, effects string
		until := max(end, core.Must(p.store.LastTick(t.Context(), s.name)).Unix())
		for second := begin + 1; second <= until; second++ {
			if s.due(second) {
				id := scheduledtasks.Task{Name: s.name, ScheduledAt: time.Unix(second, 0)}.ID()
				want = append(want, id)
				wantEffects += fmt.Sprintf("%s %d\n", id, last[id])
			}
		}
		for i, err := range p.queue.Items(t.Context(), durable.Query{Key: s.name}) {
			if items = append(items, i.Unique); err != nil || i.State != durable.Done {
				t.Errorf("item %v: %v", i, err)
			}
		}
		row := p.w.DB().QueryRowContext(t.Context(), "select group_concat(run, '' order by rowid) from effect where schedule = ?", s.name)
		if err := row.Scan(&effects); err != nil {
			t.Error(err)
		}
		if ticks += len(want); !slices.Equal(items, want) || effects != wantEffects {
			t.Errorf("%s: got items\n%q\nand effects\n%s\nwant\n%q\n%s", s.name, items, effects, want, wantEffects)
		}
	}
	return ticks, runs
}
