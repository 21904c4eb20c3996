package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// model does what a runner should do. Each run is one entry, and every rule checks all
// entries.
type model struct {
	t       *testing.T
	mu      sync.Mutex
	runs    map[string]*modelRun
	running map[string]int // by job, by "lane " and lane, by "key " and key, and ""
	limits  map[string]int
	ready   map[string][]string // by lane and key: runs that await nothing, in order
}

// modelRun is a run of a job that signal n has started.
type modelRun struct {
	attempts, left int // attempts so far, and attempts left
	line           string
	missing        []string
	refused        bool
}

// some selects every nth item of a kind.
type some struct {
	signals.Kind[int]
	every int
}

func (s some) From(signal signals.Signal) (int, bool) {
	n, ok := s.Kind.From(signal)
	return n, ok && n%s.every == 0
}

// signal records the signals that runs await.
func (m *model) signal(name string, order []string) {
	for _, id := range order {
		if run := m.runs[id]; len(run.missing) > 0 && !run.refused {
			run.missing = slices.DeleteFunc(run.missing, func(other string) bool { return other == name })
			m.place(id)
		}
	}
}

func (m *model) place(id string) {
	if run := m.runs[id]; len(run.missing) == 0 && run.line != "" {
		m.ready[run.line] = append(m.ready[run.line], id)
	}
}

// start checks that an attempt may begin. end records its end; then the next attempt may begin.
func (m *model) start(id string, uses []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := m.runs[id]
	switch {
	case run == nil || run.refused:
		m.t.Errorf("%s runs, but was refused", id)
	case len(run.missing) > 0:
		m.t.Errorf("%s runs without %q", id, run.missing)
	case run.left == 0:
		m.t.Errorf("%s runs once more, after %d attempts", id, run.attempts)
	case run.line != "" && m.ready[run.line][0] != id:
		m.t.Errorf("%s runs before %s", id, m.ready[run.line][0])
	}
	run.attempts++
	run.left--
	for _, what := range uses {
		if m.running[what]++; m.limits[what] > 0 && m.running[what] > m.limits[what] {
			m.t.Errorf("%d runs of %q, but at most %d may", m.running[what], what, m.limits[what])
		}
	}
}

func (m *model) end(id string, uses []string, fails bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, what := range uses {
		m.running[what]--
	}
	run := m.runs[id]
	if !fails {
		run.left = 0
	}
	if run.left == 0 && run.line != "" {
		m.ready[run.line] = m.ready[run.line][1:]
	}
}

// Random signals start 20 jobs with lanes, keys, limits, awaited signals and failures. Limits
// hold, the runs of a key are in order, and each match that was not refused has exactly one
// run.
func TestAgainstModel(t *testing.T) {
	raised := 10_000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		raised = 100_000
	}
	refused := 0
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { refused += compareWithModel(t, seed, raised/4) })
	}
	assert.Positive(t, refused, "nothing was refused, so the test has not seen that")
}

func compareWithModel(t *testing.T, seed uint64, raised int) (refused int) {
	random := rand.New(rand.NewPCG(seed, 7))
	m := &model{t: t, runs: map[string]*modelRun{}, running: map[string]int{}, limits: map[string]int{"": 6}, ready: map[string][]string{}}
	sink := signals.NewSink(signals.SinkOptions{Capacity: 50})
	number := signals.NewKind[int]("number")
	lanes := core.Must(core.ParseLanes("hot:2, normal, slow:3"))
	for _, l := range lanes {
		m.limits["lane "+l.Name] = l.Limit
	}
	type spec struct {
		name, lane string
		keys       int // 0: no key
		await      []string
		retries    int
		every      int // signal
	}
	var specs []spec
	var all []jobs.Job
	for i := range 20 {
		s := spec{name: fmt.Sprint("job", i), lane: lanes[random.IntN(3)].Name, keys: random.IntN(4), retries: random.IntN(3)}
		opts := jobs.Options{Name: s.name, Lane: s.lane, Priority: i, MaxConcurrency: random.IntN(5) - 1, MaxRetries: s.retries}
		for range random.IntN(3) {
			s.await = append(s.await, fmt.Sprint("ready", len(s.await)+random.IntN(2)*2))
		}
		opts.Await = s.await
		if opts.MaxConcurrency >= 0 {
			m.limits["job "+s.name] = max(1, opts.MaxConcurrency)
		}
		s.every = 5 + random.IntN(40)
		key := func(n int) string {
			if s.keys == 0 {
				return ""
			}
			return fmt.Sprint("k", n%s.keys)
		}
		do := func(ctx context.Context, _ signals.Signal, n int) error {
			id, uses := fmt.Sprint(s.name, " ", n), []string{"", "job " + s.name, "lane " + s.lane}
			if k := key(n); k != "" {
				uses = append(uses, "key "+k)
			}
			m.start(id, uses)
			time.Sleep(time.Duration(n%7) * time.Millisecond)
			fails := (n+len(s.name))%3 == 0
			m.end(id, uses, fails)
			if fails {
				return errDown
			}
			return nil
		}
		specs = append(specs, s)
		all = append(all, jobs.OnKindKeyed(some{number, s.every}, key, do, opts))
	}
	for i := range 4 {
		m.limits[fmt.Sprint("key k", i)] = 1
	}
	r, err := jobs.New(sink, all, core.Options{MaxConcurrency: 6, MaxQueued: 40, Lanes: lanes, MaxSuspended: 500})
	require.NoError(t, err)
	defer jobs.Rejected.Subscribe(sink, func(_ signals.Signal, f jobs.Failure) {
		n, _ := number.From(f.Run.Signal)
		m.mu.Lock()
		defer m.mu.Unlock()
		refused++
		id := fmt.Sprint(f.Run.Job, " ", n)
		run := m.runs[id]
		run.refused = true
		if at := slices.Index(m.ready[run.line], id); at >= 0 {
			m.ready[run.line] = slices.Delete(m.ready[run.line], at, at+1)
		}
	})()

	var order []string // the runs that await signals
	for n := range raised {
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			synctest.Wait()
		}
		if random.IntN(10) == 0 { // a signal that is retracted at once
			name := fmt.Sprint("ready", random.IntN(4))
			m.mu.Lock()
			order = slices.DeleteFunc(order, func(id string) bool { return len(m.runs[id].missing) == 0 })
			m.signal(name, order)
			m.mu.Unlock()
			sink.Hold(name, "", 0)()
		}
		m.mu.Lock()
		for _, s := range specs {
			if n%s.every != 0 {
				continue
			}
			id := fmt.Sprint(s.name, " ", n)
			run := &modelRun{left: 1 + s.retries, missing: slices.Compact(slices.Sorted(slices.Values(s.await)))}
			if s.keys > 0 {
				run.line = fmt.Sprint(s.lane, " k", n%s.keys)
			}
			m.runs[id] = run
			if len(run.missing) > 0 {
				order = append(order, id)
			} else {
				m.place(id)
			}
		}
		m.mu.Unlock()
		number.Raise(sink, "", n)
	}
	for i := range 4 {
		name := fmt.Sprint("ready", i)
		m.mu.Lock()
		m.signal(name, order)
		m.mu.Unlock()
		sink.Raise(name)
	}
	require.NoError(t, r.Drain(t.Context()))
	ran := 0
	for id, run := range m.runs {
		if !run.refused {
			ran++
			assert.Zero(t, run.left, "%s has not ended", id)
		}
	}
	assert.EqualValues(t, ran, r.Stats().Enqueued)
	t.Logf("%d runs, %d refused", ran, refused)
	r.Close()
	return refused
}
