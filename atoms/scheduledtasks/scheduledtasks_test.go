package scheduledtasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("on purpose")

// journal is a target that accepts every task, unless fail returns an error.
type journal struct {
	mu   sync.Mutex
	ids  []string
	fail func(ctx context.Context, task Task) error
}

func (j *journal) Enqueue(ctx context.Context, task Task) (core.OperationID, error) {
	if j.fail != nil {
		if err := j.fail(ctx, task); err != nil {
			return 0, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ids = append(j.ids, task.Name+" "+task.ScheduledAt.Format("15:04:05"))
	return 0, nil
}

// take returns the tasks since the last call.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := j.ids
	j.ids = nil
	return ids
}

// memory is a Store.
type memory struct {
	mu    sync.Mutex
	ticks map[string]time.Time
	fail  error
}

func (m *memory) LastTick(_ context.Context, schedule string) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ticks[schedule], m.fail
}

func (m *memory) set(fail error, ticks map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail, m.ticks = fail, ticks
}

func (m *memory) MarkTick(_ context.Context, schedule string, tick time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ticks == nil {
		m.ticks = map[string]time.Time{}
	}
	if m.fail == nil && tick.After(m.ticks[schedule]) {
		m.ticks[schedule] = tick
	}
	return m.fail
}

func (m *memory) ResetTick(_ context.Context, schedule string, to time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ticks == nil {
		m.ticks = map[string]time.Time{}
	}
	m.ticks[schedule] = to
	return m.fail
}

// watched calls back after each ResetTick, as if another process were scheduled there.
type watched struct {
	*memory
	then func()
}

func (w watched) ResetTick(ctx context.Context, schedule string, to time.Time) error {
	defer w.then()
	return w.memory.ResetTick(ctx, schedule, to)
}

// permanent is an error that is not retried.
type permanent struct{ error }

func (permanent) Permanent() bool { return true }
func (p permanent) Unwrap() error { return p.error }

func open(t testing.TB, target Target, opts Options, definitions ...Definition) *Scheduler {
	t.Helper()
	s, err := New(definitions, target, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTasksCarryWhatTheDefinitionSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		run, err := core.NewCoordinator(Raise, core.Options{Sink: sink})
		require.NoError(t, err)
		d := Definition{Name: "report", Cron: "@every_minute", Signal: "report.due", Key: "sales", Payload: []byte(`{"file":"a.csv"}`), Description: "x"}
		s := open(t, run, Options{Sink: sink}, d)
		d.Payload[2] = 'X' // the scheduler has a copy
		raised := coretest.Watch(t, sink, "report.*, schedule.*")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, s.WaitIdle(t.Context()))
		want := Task{"report", "report.due", "sales", []byte(`{"file":"a.csv"}`), "x", time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)}
		assert.Equal(t, "report@2000-01-01T00:01:00Z", want.ID())
		due, _ := signals.NewKind[Task]("report.due").From(raised.Expect("report.due")[0])
		assert.Equal(t, want, due)
		d.Payload = want.Payload
		assert.Equal(t, []Schedule{{d, want.ScheduledAt, want.ScheduledAt.Add(time.Minute), false}}, s.Schedules())
	})
}

func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, &journal{}, Options{}, job("hour", "@hourly"), job("half", "*/30 * * * *"), job("paused", "* * * * *"), job("never", "0 0 29 2 *"))
		s.Pause("paused")
		var got []string
		for task := range s.Preview(time.Now(), 4) {
			got = append(got, task.ID())
		}
		assert.ElementsMatch(t, []string{"half@2000-01-01T00:30:00Z", "half@2000-01-01T01:00:00Z", "hour@2000-01-01T01:00:00Z", "half@2000-01-01T01:30:00Z"}, got)
		for range s.Preview(time.Now(), 4) {
			break
		}
	})
}

func TestAddPauseResumeRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := open(t, j, Options{Missed: 5})
		require.NoError(t, s.Add(t.Context(), job("a", "@hourly")))
		require.ErrorContains(t, s.Add(t.Context(), job("b", "nonsense")), `scheduledtasks: entry 1, "cron": expected 5 or 6 fields`)
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"a 01:00:00"}, j.take())
		assert.Equal(t, 1, s.Pause("*"))
		assert.Equal(t, 0, s.Pause("a"))
		time.Sleep(3 * time.Hour)
		assert.Empty(t, j.take())
		require.NoError(t, s.RunNow(t.Context(), "a")) // paused or not
		assert.Equal(t, []string{"a 04:00:00"}, j.take())
		require.NoError(t, s.Add(t.Context(), job("a", "30 * * * *"))) // stays paused, keeps its last tick
		assert.Equal(t, time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC), s.Schedules()[0].Last)
		berlin := job("b", "0 12 * * *")
		berlin.TimeZone = "Europe/Berlin"
		require.NoError(t, s.Add(t.Context(), berlin))
		at := func(hour, minute int) time.Time { return time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC) }
		status := s.Status()
		for i := range status { // in the zone of the schedule
			status[i].Next = status[i].Next.UTC()
		}
		assert.Equal(t, []inspect.ScheduleStatus{{Name: "a", When: "30 * * * *", Last: at(1, 0), Next: at(4, 30), Paused: true},
			{Name: "b", When: "0 12 * * * Europe/Berlin", Next: at(11, 0)}}, status)
		assert.True(t, s.Remove("b"))
		assert.Equal(t, 1, s.Resume("a"))
		time.Sleep(45 * time.Minute) // ticks during the pause are not run
		assert.Equal(t, []string{"a 04:30:00"}, j.take())
		assert.True(t, s.Remove("a"))
		assert.False(t, s.Remove("a"))
		require.ErrorIs(t, s.RunNow(t.Context(), "a"), ErrUnknown)
		time.Sleep(3 * time.Hour)
		assert.Empty(t, j.take())
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "schedule.json")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		write(`[{"name": "a", "cron": "every day", "signal": "s"}]`)
		j := new(journal)
		_, err := Load(path, j, Options{})
		require.EqualError(t, err, "scheduledtasks: "+path+`: entry 1, "cron": expected 5 or 6 fields, got "every day"`)
		write(`[{"name": "a", "cron": "@hourly", "signal": "s"}, {"name": "b", "cron": "@hourly", "signal": "s"}, {"name": "c", "cron": "@hourly", "signal": "s"}]`)
		s, err := Load(path, j, Options{})
		require.NoError(t, err)
		defer s.Close()
		time.Sleep(time.Hour)
		assert.Len(t, j.take(), 3)
		write(`[{"name": "a", "cron": "@hourly", "signal": "s"}, {"name": "b", "cron": "30 * * * *", "signal": "s"}, {"name": "d", "cron": "@hourly", "signal": "s"}]`)
		require.NoError(t, s.Reload(t.Context()))
		list := s.Schedules()
		require.Len(t, list, 3)
		assert.Equal(t, list[0].Last, list[1].Last, "the changed one keeps its last tick")
		assert.True(t, list[2].Last.IsZero())
		write(`[{"name": "a"}]`)
		require.ErrorContains(t, s.Reload(t.Context()), `entry 1, "signal"`)
		time.Sleep(time.Hour)
		assert.ElementsMatch(t, []string{"a 02:00:00", "b 01:30:00", "d 02:00:00"}, j.take())
		_, err = Load(path+"x", j, Options{})
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

// Fault avoided: a full queue blocked the scan, and every other schedule with it.
func TestWeakPointAFullTargetHoldsUpNoOtherSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		full, err := core.NewCoordinator(func(ctx context.Context, _ Task) error { <-ctx.Done(); return nil }, core.Options{MaxConcurrency: 1, MaxQueued: -1})
		require.NoError(t, err)
		defer full.Close()
		j.fail = func(ctx context.Context, task Task) error {
			if task.Name == "free" {
				return nil
			}
			_, err := full.Enqueue(ctx, task)
			return cmp.Or(err, errOnPurpose) // the journal does not record it
		}
		definitions, stuck := []Definition{job("free", "@every_second")}, 1000
		if coretest.Race {
			stuck = 100
		}
		for i := range stuck {
			definitions = append(definitions, job(fmt.Sprint("stuck", i), "@every_second"))
		}
		s := open(t, j, Options{Timeout: 5 * time.Second}, definitions...)
		failed := coretest.Watch(t, s.Sink(), Failed.Name())
		time.Sleep(20 * time.Second)
		assert.Len(t, j.take(), 20, "of the free one")
		stats := s.Stats()
		assert.InDelta(t, stuck, stats.Running, 1, "a schedule hands over one task at a time")
		failure, _ := Failed.From(failed.Expect(Failed.Name(), Failed.Name())[1]) // the first task had room
		assert.ErrorIs(t, failure.Err, core.ErrTimeout)
		assert.NotZero(t, stats.Missed)
	})
}

// Faults avoided: nothing survived a restart, and all missed ticks were run.
func TestWeakPointRestartAndMissedRuns(t *testing.T) {
	for missed, want := range map[int][]string{-1: nil, 0: nil, RunOnce: {"a 05:00:00"}, 3: {"a 03:00:00", "a 04:00:00", "a 05:00:00"}, 100: {"a 02:00:00", "a 03:00:00", "a 04:00:00", "a 05:00:00"}} {
		synctest.Test(t, func(t *testing.T) {
			store, j := new(memory), new(journal)
			first := open(t, j, Options{Store: store}, job("a", "@hourly"))
			time.Sleep(time.Hour)
			assert.Equal(t, []string{"a 01:00:00"}, j.take())
			first.Close()
			time.Sleep(4*time.Hour + 30*time.Minute)
			sink := signals.NewSink(signals.SinkOptions{})
			raised := coretest.Watch(t, sink, Missed.Name())
			second := open(t, j, Options{Store: store, Missed: missed, Sink: sink}, job("a", "@hourly"))
			assert.Equal(t, 1, second.Schedules()[0].Last.Hour())
			assert.Equal(t, want, j.take())
			m, _ := Missed.From(raised.Expect(Missed.Name())[0])
			assert.Equal(t, MissedTicks{"a", time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC), 4, len(want), "the first of them was noticed 3h30m0s late"}, m)
			assert.Equal(t, uint64(4-len(want)), second.Stats().Missed)
			time.Sleep(30 * time.Minute)
			assert.Equal(t, []string{"a 06:00:00"}, j.take())
			third := open(t, j, Options{Store: store, Missed: missed}, job("a", "@hourly"))
			assert.Empty(t, j.take(), "a tick is handed over once")
			third.Close()
		})
	}
}

// A tick is marked after its task was handed over: at least once.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, j := new(memory), new(journal)
		store.set(errOnPurpose, nil)
		_, err := New([]Definition{job("a", "@hourly")}, j, Options{Store: store})
		require.ErrorIs(t, err, errOnPurpose)
		store.set(nil, nil)
		s := open(t, j, Options{Store: store}, job("a", "@hourly"))
		raised := coretest.Watch(t, s.Sink(), "schedule.*")
		store.set(errOnPurpose, nil)
		time.Sleep(time.Hour)
		first := j.take()
		assert.Len(t, first, 1)
		raised.ExpectExactly(Fired.Name(), Failed.Name())
		s.Close()
		store.set(nil, map[string]time.Time{"a": time.Now().Add(-time.Hour)})
		open(t, j, Options{Store: store}, job("a", "@hourly"))
		assert.Equal(t, first, j.take(), "what was not marked is handed over again, as the same task")
	})
}

func TestOptionsThatAreRefused(t *testing.T) {
	_, err := New(nil, nil, Options{})
	require.EqualError(t, err, "scheduledtasks: there must be a target, not nil")
	_, err = New(nil, &journal{}, Options{Missed: 1001})
	require.EqualError(t, err, "scheduledtasks: Options.Missed is 1001, but may be 1000 at most")
	_, err = New(nil, &journal{}, Options{Overlap: SkipOverlap})
	require.ErrorContains(t, err, "needs a target with a method Lookup")
}

// Fault avoided: failed handlers were counted, but not signalled.
func TestWeakPointFailedTasksAreSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, err := core.NewCoordinator(Run(func(context.Context, Task) error { return errOnPurpose }), core.Options{})
		require.NoError(t, err)
		s := open(t, run, Options{}, job("a", "@hourly"))
		raised := coretest.Watch(t, run.Sink(), "job.due, schedule.*")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.NoError(t, s.WaitIdle(t.Context()))
		got := raised.ExpectExactly("job.due", TaskFailed.Name())
		failure, _ := TaskFailed.From(got[1])
		assert.Equal(t, "a", got[1].Key)
		assert.ErrorIs(t, failure.Err, errOnPurpose)
	})
	require.ErrorContains(t, Raise(t.Context(), Task{Signal: "x"}), "needs an operation")
	require.Panics(t, func() { Run(nil) })
}

// Fault avoided: two scans at once fired one tick twice. Fault avoided: a wait returned too
// early.
func TestWeakPointEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{}
		var running atomic.Int64
		run, err := core.NewCoordinator(func(ctx context.Context, task Task) error {
			running.Add(1)
			defer running.Add(-1)
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			seen[task.ID()]++
			return nil
		}, core.Options{MaxConcurrency: 100})
		require.NoError(t, err)
		s := open(t, run, Options{Store: new(memory), Missed: 2}, job("a", "@every_second"), job("b", "@every_second"), job("c", "*/2 * * * * *"))
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(i), 3))
				for range 100 {
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
					switch rnd.IntN(7) {
					case 0:
						s.scan()
					case 1:
						s.Pause("a")
					case 2:
						s.Resume("*")
					case 3:
						assert.NoError(t, s.RunNow(t.Context(), "c"))
					case 4:
						assert.NoError(t, s.Add(t.Context(), job("b", fmt.Sprintf("*/%d * * * * *", 1+rnd.IntN(3)))))
					case 5:
						s.Schedules()
					case 6:
						assert.NoError(t, coretest.CheckBooks(s.Stats().Stats))
					}
				}
			})
		}
		calls.Wait()
		s.Pause("*")
		require.NoError(t, s.WaitIdle(t.Context()))
		assert.Zero(t, running.Load())
		for id, n := range seen {
			assert.Equal(t, 1, n, id)
		}
		stats := s.Stats()
		require.NoError(t, coretest.CheckBooks(stats.Stats))
		assert.Equal(t, stats.Enqueued, stats.Succeeded)
		assert.EqualValues(t, len(seen), stats.Succeeded)
		assert.Contains(t, stats.String(), `"schedules":3`)
		assert.Contains(t, fmt.Sprint(stats.LogValue()), "schedules=3")
		require.NoError(t, s.Drain(t.Context()))
		require.NoError(t, s.Drain(t.Context()))
		require.ErrorIs(t, s.RunNow(t.Context(), "a"), core.ErrClosed)
		require.ErrorIs(t, s.Add(t.Context(), job("d", "@hourly")), core.ErrClosed)
	})
}

// Ten thousand schedules that are not due cost one look at the first of them each minute.
func TestIdleSchedulesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var definitions []Definition
		for i := range 10_000 {
			definitions = append(definitions, job(fmt.Sprint("s", i), fmt.Sprintf("%d %d 1 7 *", i%60, i%24)))
		}
		j := new(journal)
		s := open(t, j, Options{}, definitions...)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 60, s.scans)
		assert.EqualValues(t, 10_000, s.Stats().Schedules)
		assert.Empty(t, j.take())
	})
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		var bodies sync.Map
		var n atomic.Int64
		s := open(t, TargetFunc(func(ctx context.Context, task Task) error {
			body, _ := bodies.Load(task.Name)
			return body.(coretest.Body)(ctx)
		}), Options{Timeout: -1}, job("never", "0 0 1 1 *"))
		return coretest.Subject{
			Lifecycle: s,
			Submit: func(ctx context.Context, body coretest.Body) error {
				name := fmt.Sprint(n.Add(1))
				bodies.Store(name, body)
				_, err := s.handovers.Enqueue(ctx, &firing{task: Task{Name: name}, entry: &entry{}, manual: true})
				return err
			},
			Pause: s.Control.Pause, Resume: s.Control.Resume,
			Sink: s.Sink(), Stats: s.Control.Stats, WaitIdle: s.WaitIdle,
		}
	})
}

// callsBack is an error that calls its scheduler.
type callsBack struct{ s *atomic.Pointer[Scheduler] }

func (c callsBack) Error() string {
	c.s.Load().Stats()
	return "calls back"
}

// Fault avoided: a failed enqueue ended the loop, and said nothing. A target may refuse, panic, or
// return an error that panics in its methods or calls the scheduler back. Other schedules go on.
func TestOneErrorStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scheduler atomic.Pointer[Scheduler]
		var none *fs.PathError
		ends := map[string]func() error{
			"refused": func() error { return permanent{errOnPurpose} }, "panics": func() error { panic("on purpose") }, "good": func() error { return nil },
			"error panics": func() error { return none }, "calls back": func() error { return callsBack{&scheduler} },
		}
		var definitions []Definition
		for name := range ends {
			definitions = append(definitions, job(name, "@hourly"))
		}
		j := &journal{fail: func(_ context.Context, task Task) error { return ends[task.Name]() }}
		s := open(t, j, Options{}, definitions...)
		scheduler.Store(s)
		time.Sleep(2*time.Hour + 30*time.Second)
		assert.Equal(t, []string{"good 01:00:00", "good 02:00:00"}, j.take())
		failed := map[string]bool{}
		for signal := range s.Sink().Sense(signals.Query{Pattern: Failed.Name()}) {
			failed[signal.Key] = true
		}
		assert.Equal(t, map[string]bool{"refused": true, "panics": true, "error panics": true, "calls back": true}, failed)
		assert.Contains(t, became(s, "error panics")[0], "02:00 failed false error of type *fs.PathError, whose method Error panicked")
		assert.Equal(t, "02:00 failed false calls back", became(s, "calls back")[0])
		why, err := s.Explain("error panics")
		assert.NoError(t, err)
		assert.Contains(t, why, "failed 24 times")
		assert.Contains(t, why, "whose method Error panicked")
		raised := coretest.Watch(t, s.Sink(), Failed.Name())
		require.ErrorIs(t, s.RunNow(t.Context(), "refused"), errOnPurpose)
		failure, _ := Failed.From(raised.Expect(Failed.Name())[0])
		assert.ErrorIs(t, failure.Err, errOnPurpose)
		assert.EqualValues(t, 2, s.Stats().Succeeded)
		s.Close()
	})
}

// A restart runs, as missed, no ticks of a cron that was changed, and none of a pause, in this process or between two.
func TestARestartAfterAChangeOrAPause(t *testing.T) {
	const old, changed = "@hourly", "*/10 * * * *"
	for name, c := range map[string]struct {
		first, second string // crons of two processes
		during        func(*Scheduler)
		want          []string // until 07:10; the first process ran until 04:30, the second from 06:30
	}{
		"unchanged": {old, old, func(*Scheduler) {}, []string{"a 05:00:00", "a 06:00:00", "a 07:00:00"}},
		"changed":   {old, "5 * * * *", func(*Scheduler) {}, []string{"a 07:05:00"}},
		"changed in the process": {old, changed, func(s *Scheduler) {
			assert.NoError(t, s.Add(context.Background(), job("a", changed)))
		}, []string{"a 06:10:00", "a 06:20:00", "a 06:30:00", "a 06:40:00", "a 06:50:00", "a 07:00:00", "a 07:10:00"}},
		"changed and back": {old, old, func(s *Scheduler) {
			assert.NoError(t, s.Add(context.Background(), job("a", changed)))
			s.Pause("a")
			assert.NoError(t, s.Add(context.Background(), job("a", old)))
		}, []string{"a 07:00:00"}},
		"paused": {old, old, func(s *Scheduler) { s.Pause("a") }, []string{"a 07:00:00"}},
		"paused and resumed": {old, old, func(s *Scheduler) {
			s.Pause("a")
			time.Sleep(time.Hour)
			s.Resume("a")
		}, []string{"a 06:00:00", "a 07:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, j := new(memory), new(journal)
				first := open(t, j, Options{Store: store}, job("a", c.first))
				time.Sleep(4*time.Hour + 30*time.Minute)
				c.during(first)
				first.Close()
				j.take()
				time.Sleep(time.Until(time.Date(2000, 1, 1, 6, 30, 0, 0, time.UTC)))
				open(t, j, Options{Store: store, Missed: 3}, job("a", c.second))
				time.Sleep(40 * time.Minute)
				assert.Equal(t, c.want, j.take())
			})
		})
	}
	// A tick of a cron that never ran is not missed, however long no process ran.
	synctest.Test(t, func(t *testing.T) {
		store, j := new(memory), new(journal)
		first := open(t, j, Options{Store: store}, job("a", old))
		time.Sleep(time.Hour)
		first.Close()
		j.take()
		time.Sleep(4 * time.Hour)
		d := job("a", changed)
		d.RunOnStartup = true
		s := open(t, j, Options{Store: store, Missed: 100}, d)
		missed := coretest.Watch(t, s.Sink(), Missed.Name())
		assert.Equal(t, []string{"a 05:00:00"}, j.take(), "RunOnStartup runs the latest tick")
		missed.ExpectExactly()
		store.set(errOnPurpose, store.ticks)
		failed := coretest.Watch(t, s.Sink(), Failed.Name())
		assert.Equal(t, 1, s.Pause("a"))
		failed.ExpectExactly(Failed.Name())
	})
}

// became lists the firings of a schedule, the newest first.
func became(s *Scheduler, name string) (all []string) {
	synctest.Wait()
	for _, f := range s.Firings(name) {
		all = append(all, fmt.Sprintf("%s %s %t %s", f.Tick.Format("15:04"), f.State, f.Operation != 0, f.Err))
	}
	return all
}

// The last 20 firings say what became of their tasks, also when these have left the window of the target.
func TestFirings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := core.Must(core.NewCoordinator(func(_ context.Context, task Task) error {
			time.Sleep(90 * time.Minute)
			if task.ScheduledAt.Hour() == 1 {
				return errOnPurpose
			}
			return nil
		}, core.Options{MaxAge: time.Minute, MaxConcurrency: 1}))
		defer tasks.Close()
		s := open(t, tasks, Options{Overlap: SkipOverlap}, Definition{Name: "job", Cron: "@hourly", Signal: "job.due", Description: "does it"})
		defer s.Close()
		assert.Equal(t, "does it", s.Status()[0].Description)
		skips := coretest.Watch(t, s.Sink(), Skipped.Name())
		time.Sleep(4*time.Hour + 15*time.Minute)
		skipped := "skipped false " + ErrOverlap.Error()
		want := []string{"04:00 " + skipped, "03:00 running true ", "02:00 " + skipped, "01:00 failed true on purpose"}
		assert.Equal(t, want, became(s, "job"))
		skips.ExpectExactly(Skipped.Name(), Skipped.Name())
		_, ok := tasks.Lookup(s.Firings("job")[3].Operation)
		assert.False(t, ok, "it has left the window long ago")
		time.Sleep(30 * time.Minute)
		require.NoError(t, s.RunNow(t.Context(), "job"), "nothing else runs")
		time.Sleep(time.Minute)
		assert.Contains(t, became(s, "job")[0], "running true")
		time.Sleep(48 * time.Hour)
		assert.Len(t, became(s, "job"), 20)
		assert.Empty(t, became(s, "none"))
		assert.LessOrEqual(t, len(s.handed), 20, "what has left the window is forgotten")
	})
}

// Without a window, a firing is handed over. A hand-over that is tried again is one firing, and missed ticks are one.
func TestFiringsThatFailOrAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var away atomic.Bool
		away.Store(true)
		j.fail = func(context.Context, Task) error {
			if away.Load() {
				return errOnPurpose
			}
			return nil
		}
		s := open(t, &j, Options{}, job("job", "@hourly"))
		defer s.Close()
		time.Sleep(time.Hour + 10*time.Second)
		assert.Equal(t, []string{"01:00 failed false on purpose"}, became(s, "job"))
		away.Store(false)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"01:00 handed over false "}, became(s, "job"))
		away.Store(true)
		time.Sleep(2 * time.Hour)
		require.Len(t, became(s, "job"), 3)
		assert.Contains(t, became(s, "job")[1], "02:00 missed false 1 ticks were missed, and 0 of them are run late: the first of them could not be handed over")
	})
}

// The target and the store are away for half a second to three seconds, again and again. With
// Missed, each tick is handed over once, and in order. Without Missed, ticks that could not be
// handed over before the next tick count as missed.
func TestTheTargetIsAwayNowAndThen(t *testing.T) {
	for _, missed := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			var away atomic.Bool
			j := &journal{fail: func(context.Context, Task) error {
				if away.Load() {
					return errOnPurpose
				}
				return nil
			}}
			sink := signals.NewSink(signals.SinkOptions{})
			raised := coretest.Watch(t, sink, Missed.Name())
			store := new(memory)
			s := open(t, j, Options{Store: store, Missed: missed, Sink: sink}, job("a", "@every_second"))
			for half := range 6 {
				time.Sleep(5*time.Second + 100*time.Millisecond)
				away.Store(true)
				time.Sleep(time.Duration(half+1) * time.Second / 2)
				away.Store(false)
			}
			time.Sleep(10*time.Second + time.Second/2)
			got, stats := j.take(), s.Stats()
			ticks := int(time.Now().Unix() - time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
			assert.Equal(t, ticks, len(got)+int(stats.Missed))
			if missed > 0 {
				for n, id := range got {
					assert.Equal(t, fmt.Sprintf("a 00:00:%02d", n+1), id)
				}
				assert.Zero(t, stats.Missed)
			} else {
				assert.NotZero(t, stats.Missed)
			}
			m, _ := Missed.From(raised.Expect(Missed.Name())[0])
			assert.Contains(t, m.Reason, "could not be handed over for ")
			assert.Contains(t, m.Reason, errOnPurpose.Error())
			assert.Equal(t, s.Schedules()[0].Last, store.ticks["a"])
		})
	}
}

// A tick that could not be handed over is tried again for a minute. It is not tried again if its
// schedule was paused meanwhile, or if the target refuses it for good.
func TestAHandOverIsTriedAgain(t *testing.T) {
	hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		err   error
		away  time.Duration
		pause bool
		want  []string
	}{
		"three seconds":  {errOnPurpose, 3 * time.Second, false, []string{"a 01:00:00"}},
		"two minutes":    {errOnPurpose, 2 * time.Minute, false, nil},
		"paused":         {errOnPurpose, 3 * time.Second, true, nil},
		"permanent":      {permanent{errOnPurpose}, 3 * time.Second, false, nil},
		"refused":        {&core.RefusedError{}, 3 * time.Second, false, nil},
		"closed":         {core.ErrClosed, 3 * time.Second, false, nil},
		"startup, later": {errOnPurpose, 30 * time.Minute, false, []string{"b 12:00:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, back := job("a", "@hourly"), hour.Add(c.away)
				if name == "startup, later" {
					d, back = job("b", "0 12 * * *"), time.Now().Add(c.away)
					d.RunOnStartup = true
				}
				j := &journal{fail: func(context.Context, Task) error {
					if time.Now().Before(back) {
						return c.err
					}
					return nil
				}}
				s := open(t, j, Options{}, d)
				failed := coretest.Watch(t, s.Sink(), Failed.Name())
				time.Sleep(time.Hour + time.Second)
				if c.pause {
					why, err := s.Explain("a")
					require.NoError(t, err)
					assert.Equal(t, "the hand-over of the tick 2000-01-01T01:00:00Z failed 4 times; the next try is at 2000-01-01T01:00:01Z: on purpose", why)
					assert.Equal(t, 1, s.Pause("a")+s.Resume("a")-1)
				}
				time.Sleep(10 * time.Minute)
				assert.Equal(t, c.want, j.take())
				if d.Name == "a" {
					failure, _ := Failed.From(failed.Expect(Failed.Name())[0])
					assert.Equal(t, c.err == errOnPurpose, failure.Again)
				}
				assert.Equal(t, name == "two minutes", s.Stats().Missed == 1)
			})
		})
	}
}

// The clock was ten years ahead for a moment, in this process or in an earlier one. The schedule
// waits, raises a signal, and goes on after Reset.
func TestALastTickInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, j, sink := new(memory), new(journal), signals.NewSink(signals.SinkOptions{})
		future := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
		store.set(nil, map[string]time.Time{"a": future, "b": time.Now().Add(59 * time.Minute)})
		raised := coretest.Watch(t, sink, Stalled.Name())
		s := open(t, j, Options{Store: store, Sink: sink}, job("a", "@hourly"), job("b", "@hourly"))
		stalled, _ := Stalled.From(raised.Expect(Stalled.Name())[0])
		const why = "it waits for 2010-01-01T01:00:00Z, because its last tick is 87672h0m0s in the future; Reset lets it go on now"
		assert.Equal(t, StalledSchedule{"a", future, future.Add(time.Hour), why}, stalled)
		time.Sleep(30 * time.Minute)
		raised.ExpectExactly()
		require.ErrorIs(t, s.Reset(t.Context(), "x"), ErrUnknown)
		require.NoError(t, s.Reset(t.Context(), "a"))
		got, err := s.Explain("a")
		require.NoError(t, err)
		assert.Equal(t, "it waits for 2000-01-01T01:00:00Z", got)
		time.Sleep(time.Hour)
		assert.ElementsMatch(t, []string{"a 01:00:00", "b 01:00:00"}, j.take())
		assert.Equal(t, 2000, store.ticks["a"].Year())
	})
	p := newPlan(t, 0, 0, monday, job("a", "@hourly"))
	for n, now := range []time.Time{monday, monday.AddDate(10, 0, 0), monday, monday} {
		stalled := p.stalled(now)
		due, _ := p.step(now)
		for _, f := range due {
			p.done(f, true, now)
		}
		assert.Len(t, stalled, []int{0, 0, 1, 0}[n])
	}
}

// While the task of a schedule runs, SkipOverlap skips its ticks, even if the schedule was
// removed and added again, by any call. After the end of the task, nothing is kept for
// removed schedules.
func TestSkipOverlapKnowsTheTaskOfARemovedSchedule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedule.json")
	write := func(definitions ...Definition) {
		data, err := json.Marshal(definitions)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	a, b := job("a", "@hourly"), job("b", "@yearly")
	for name, again := range map[string]func(*Scheduler) error{
		"Remove and Add": func(s *Scheduler) error { s.Remove("a"); return s.Add(context.Background(), a) },
		"Reload": func(s *Scheduler) error {
			write(b)
			err := s.Reload(context.Background())
			write(a, b)
			return errors.Join(err, s.Reload(context.Background()))
		},
	} {
		for _, accepts := range []time.Duration{0, time.Second} { // time that the target needs to accept a task
			t.Run(name, func(t *testing.T) {
				write(a, b)
				synctest.Test(t, func(t *testing.T) {
					j := new(journal)
					run := core.Must(core.NewCoordinator(func(ctx context.Context, task Task) error {
						_, err := j.Enqueue(ctx, task)
						time.Sleep(150 * time.Minute)
						return err
					}, core.Options{MaxConcurrency: 9}))
					s, err := Load(path, slowTarget{run, accepts}, Options{Overlap: SkipOverlap})
					require.NoError(t, err)
					defer core.InOrder(s, run).Close()
					time.Sleep(time.Hour + time.Second/2)
					require.NoError(t, again(s))
					time.Sleep(time.Second)
					require.ErrorIs(t, s.RunNow(t.Context(), "a"), ErrOverlap)
					require.NoError(t, again(s), "twice")
					time.Sleep(3 * time.Hour)
					assert.Equal(t, []string{"a 01:00:00", "a 04:00:00"}, j.take())
					assert.Equal(t, uint64(3), s.Stats().Skipped)
					s.Remove("a")
					assert.Len(t, s.tasks, 1, "its task runs")
					require.NoError(t, run.WaitIdle(t.Context()))
					s.Remove("b")
					assert.Empty(t, s.tasks)
				})
			})
		}
	}
}

// slowTarget needs time to accept a task.
type slowTarget struct {
	*core.Coordinator[Task]
	accepts time.Duration
}

func (s slowTarget) Enqueue(ctx context.Context, task Task) (core.OperationID, error) {
	time.Sleep(s.accepts)
	return s.Coordinator.Enqueue(ctx, task)
}

// A definition has its own Missed, Overlap, Jitter and Timeout, also after it was changed.
func TestOptionsOfADefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		run := core.Must(core.NewCoordinator(func(ctx context.Context, task Task) error {
			_, err := j.Enqueue(ctx, task)
			time.Sleep(90 * time.Minute)
			return err
		}, core.Options{MaxConcurrency: 9}))
		a, b, c := job("a", "@hourly"), job("b", "@hourly"), job("c", "@hourly")
		a.Overlap, c.Jitter = SkipOverlap, 30*time.Minute
		s := open(t, slowTarget{run, time.Second}, Options{Jitter: -1}, a, b, c)
		time.Sleep(2*time.Hour + 45*time.Minute)
		assert.ElementsMatch(t, []string{"a 01:00:00", "b 01:00:00", "b 02:00:00", "c 01:00:00", "c 02:00:00"}, j.take())
		assert.NotZero(t, s.plan.entries["c"].offset)
		a.Overlap, b.Overlap, c.Jitter, c.Timeout = AllowOverlap, SkipOverlap, 0, time.Millisecond
		require.NoError(t, s.put(t.Context(), []Definition{a, b, c}, true))
		failed := coretest.Watch(t, s.Sink(), Failed.Name())
		time.Sleep(20 * time.Minute)
		failure, _ := Failed.From(failed.Expect(Failed.Name())[0])
		assert.Equal(t, "c", failure.Task.Name)
		assert.ErrorIs(t, failure.Err, core.ErrTimeout)
		time.Sleep(time.Hour)
		got := j.take()
		assert.Contains(t, got, "a 04:00:00")
		assert.Contains(t, got, "b 04:00:00")
		assert.NotContains(t, got, "b 03:00:00", "its last task began before it was to skip")
		require.NoError(t, run.Close())
	})
}

// A TargetFunc skips a tick itself, for example because a durable queue has the last task.
func TestATargetFuncSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, TargetFunc(func(_ context.Context, task Task) error {
			if task.ScheduledAt.Hour()%2 == 0 {
				return fmt.Errorf("wrapped: %w", ErrOverlap)
			}
			return nil
		}), Options{}, job("a", "@hourly"))
		skipped := coretest.Watch(t, s.Sink(), Skipped.Name())
		time.Sleep(4*time.Hour + time.Minute)
		skipped.ExpectExactly(Skipped.Name(), Skipped.Name())
		assert.Equal(t, uint64(2), s.Stats().Skipped)
		d := job("b", "@hourly")
		d.Overlap = SkipOverlap
		assert.ErrorContains(t, s.Add(t.Context(), d), `scheduledtasks: schedule "b": Overlap is "skip", but that needs a target with a method Lookup, which a scheduledtasks.TargetFunc does not have`)
	})
}

// A process that starts while another one stores since when a schedule is in force still hands over the ticks that were missed.
func TestProcessesStartTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(4*time.Hour + 30*time.Minute)
		m, others := &memory{ticks: map[string]time.Time{"a": time.Now().Add(-210 * time.Minute)}}, []*journal(nil)
		open(t, &journal{}, Options{Missed: 9, Store: watched{m, func() {
			others = append(others, new(journal))
			open(t, others[len(others)-1], Options{Missed: 9, Store: &memory{ticks: maps.Clone(m.ticks)}}, job("a", "@hourly"))
		}}}, job("a", "@hourly"))
		require.Len(t, others, 2)
		for _, j := range others {
			assert.Equal(t, []string{"a 02:00:00", "a 03:00:00", "a 04:00:00"}, j.take())
		}
	})
}
