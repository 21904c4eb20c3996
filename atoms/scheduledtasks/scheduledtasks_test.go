package scheduledtasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Fault avoided: a failed enqueue ended the loop, and said nothing.
func TestWeakPointOneErrorStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		j := &journal{fail: func(_ context.Context, task Task) error {
			switch task.Name {
			case "bad":
				return permanent{errOnPurpose}
			case "panics":
				panic("on purpose")
			}
			return nil
		}}
		s := open(t, j, Options{Sink: sink}, job("bad", "@hourly"), job("good", "@hourly"), job("panics", "@hourly"))
		failed := coretest.Watch(t, sink, SignalFailed)
		time.Sleep(2 * time.Hour)
		assert.Equal(t, []string{"good 01:00:00", "good 02:00:00"}, j.take())
		var keys []string
		for _, f := range failed.Expect(SignalFailed, SignalFailed, SignalFailed, SignalFailed) {
			keys = append(keys, f.Key)
		}
		assert.ElementsMatch(t, []string{"bad", "bad", "panics", "panics"}, keys)
		require.ErrorIs(t, s.RunNow(t.Context(), "bad"), errOnPurpose)
		failure, _ := Failures.Named(SignalFailed).From(failed.Expect(SignalFailed)[0])
		assert.ErrorIs(t, failure.Err, errOnPurpose)
		assert.Equal(t, uint64(5), s.Stats().Failed)
		assert.True(t, s.Schedules()[0].Last.IsZero())
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
		failed := coretest.Watch(t, s.Sink(), SignalFailed)
		time.Sleep(20 * time.Second)
		assert.Len(t, j.take(), 20, "of the free one")
		stats := s.Stats()
		assert.InDelta(t, stuck, stats.Running, 1, "a schedule hands over one task at a time")
		failure, _ := Failures.Named(SignalFailed).From(failed.Expect(SignalFailed, SignalFailed)[1]) // the first task had room
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
			raised := coretest.Watch(t, sink, SignalMissed)
			second := open(t, j, Options{Store: store, Missed: missed, Sink: sink}, job("a", "@hourly"))
			assert.Equal(t, 1, second.Schedules()[0].Last.Hour())
			assert.Equal(t, want, j.take())
			m, _ := Missed.From(raised.Expect(SignalMissed)[0])
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

// Fault avoided: runOnStartup ran again after every crash.
func TestWeakPointRunOnStartupAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, j := new(memory), new(journal)
		d := job("a", "0 12 * * *")
		d.RunOnStartup = true
		for range 3 {
			s := open(t, j, Options{Store: store}, d)
			synctest.Wait()
			s.Close()
			time.Sleep(time.Hour)
		}
		assert.Equal(t, []string{"a 12:00:00"}, j.take(), "the tick of the day before")
		open(t, j, Options{}, d)
		assert.Len(t, j.take(), 1, "without a store nothing remembers it")
	})
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
		raised.ExpectExactly(SignalFired, SignalFailed)
		s.Close()
		store.set(nil, map[string]time.Time{"a": time.Now().Add(-time.Hour)})
		open(t, j, Options{Store: store}, job("a", "@hourly"))
		assert.Equal(t, first, j.take(), "what was not marked is handed over again, as the same task")
	})
}

func TestSkipOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		run, err := core.NewCoordinator(func(ctx context.Context, task Task) error {
			_, err := j.Enqueue(ctx, task)
			time.Sleep(150 * time.Minute)
			return err
		}, core.Options{MaxConcurrency: 9})
		require.NoError(t, err)
		s := open(t, run, Options{Overlap: SkipOverlap}, job("a", "@hourly"))
		skipped := coretest.Watch(t, s.Sink(), SignalSkipped)
		time.Sleep(2*time.Hour + time.Minute)
		require.ErrorIs(t, s.RunNow(t.Context(), "a"), ErrOverlap)
		time.Sleep(3 * time.Hour)
		assert.Equal(t, []string{"a 01:00:00", "a 04:00:00"}, j.take())
		skipped.ExpectExactly(SignalSkipped, SignalSkipped, SignalSkipped, SignalSkipped)
		assert.Equal(t, uint64(4), s.Stats().Skipped)
		require.NoError(t, run.Drain(t.Context()))
		_, err = New(nil, j, Options{Overlap: SkipOverlap})
		require.ErrorContains(t, err, "needs a target with a method Lookup")
	})
}

func TestOptionsThatAreRefused(t *testing.T) {
	_, err := New(nil, nil, Options{})
	require.EqualError(t, err, "scheduledtasks: there must be a target, not nil")
	_, err = New(nil, &journal{}, Options{Missed: 1001})
	require.EqualError(t, err, "scheduledtasks: Options.Missed is 1001, but may be 1000 at most")
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
		got := raised.ExpectExactly("job.due", SignalTaskFailed)
		failure, _ := Failures.Named(SignalTaskFailed).From(got[1])
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
