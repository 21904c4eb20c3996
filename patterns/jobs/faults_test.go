package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// Two faults have their tests elsewhere: without a key there is no order (TestOptions), and a dead
// letter raises its trigger again with its payload (ExampleFailure).

func TestLifecycle(t *testing.T) {
	body := signals.NewKind[coretest.Body]("body")
	for name, opts := range map[string]jobs.Options{
		"runs":            {MaxConcurrency: -1},
		"runs that await": {MaxConcurrency: -1, Await: []string{"here"}},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				sink := signals.NewSink(signals.SinkOptions{})
				sink.Hold("here", "", 0)
				var accepted, told atomic.Uint64
				opts.Key = func(signals.Signal) string { accepted.Add(1); return "" }
				r, err := jobs.New(sink, []jobs.Job{jobs.OnKind(body, func(ctx context.Context, _ signals.Signal, b coretest.Body) error { return b(ctx) }, opts)},
					core.Options{OnDone: func(core.Snapshot) { told.Add(1) }})
				require.NoError(t, err)
				return coretest.Subject{
					Lifecycle: r, Pause: r.Pause, Resume: r.Resume, Sink: sink, Stats: r.Stats, WaitIdle: r.WaitIdle, Told: told.Load,
					Submit: func(_ context.Context, b coretest.Body) error {
						before := accepted.Load()
						body.Raise(sink, "", b)
						if accepted.Load() == before {
							return core.ErrClosed
						}
						return nil
					},
				}
			})
		})
	}
}

// Fault avoided: a job that awaited a signal of another job of its lane kept the slot, the lane
// and the key that the other job needed, and both waited for ever. The same happened in a pause
// before a retry.
func TestWaitsKeepNoSlot(t *testing.T) {
	for name, opts := range map[string]jobs.Options{
		"await":    {Await: []string{"other.done"}},
		"back off": {MaxRetries: 1, RetryDelay: 10 * time.Second, MaxRetryDelay: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, core.Options{MaxConcurrency: 1}, func(s *scene) []jobs.Job {
				opts.Name, opts.Lane = "first", "io:1"
				if opts.Await != nil {
					opts.Key = fixedKey("k")
				}
				return []jobs.Job{jobs.On("go", s.does("first", 0, errDown), opts),
					jobs.On("go", s.does("other", time.Second), jobs.Options{Name: "other", Lane: "io", Key: opts.Key, EmitOnComplete: "other.done"})}
			}, func(s *scene) {
				s.raise("go", "")
				if opts.Await != nil {
					x, _ := s.Awaiting().Explain(awaiting(s))
					assert.Contains(t, x.String(), `waits for signals ["other.done"]`)
				}
				require.NoError(t, s.Drain(s.t.Context()))
				notes := s.noted()
				assert.Contains(t, notes, "0s other ")
				assert.Len(t, notes, map[string]int{"await": 2, "back off": 3}[name])
			})
		})
	}
}

// awaiting is the first operation that awaits signals.
func awaiting(s *scene) core.OperationID {
	synctest.Wait()
	for op := range s.Awaiting().Operations(core.OperationQuery{}) {
		return op.ID
	}
	return 0
}

// Fault avoided: a signal between two looks was missed, and a wait that timed out between two
// looks let the job run without the awaited signals.
func TestAwaitMissesNothing(t *testing.T) {
	stage(t, core.Options{}, one("go", takes(0), jobs.Options{Await: []string{"x"}, AwaitTimeout: time.Second, MaxRetries: 3, RetryDelay: time.Second}), func(s *scene) {
		s.raise("go", "1")
		s.sink.Hold("x", "", 0)()
		s.expect("0s ran 1")
		s.raise("go", "2")
		time.Sleep(time.Minute)
		s.expect()
		assert.EqualValues(t, 1, s.Stats().Failed)
		s.raise("go", "3") // the missing signal comes during the pause
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 1, s.Stats().Suspended)
		s.raise("x", "")
		time.Sleep(time.Minute)
		assert.Len(t, s.noted(), 1)
	})
}

// Fault avoided: a runner that was shut down reported waits as timeouts, and discarded runs
// silently.
func TestEndOfWaits(t *testing.T) {
	for name, end := range map[string]func(*scene) error{
		"Stop":             func(s *scene) error { return s.Stop(s.t.Context()) },
		"Close":            func(s *scene) error { return s.Close() },
		"Close of Control": func(s *scene) error { return s.Control.Close() },
		"Cancel":           func(s *scene) error { s.Awaiting().Cancel(awaiting(s), nil); return s.Drain(s.t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, core.Options{}, one("go", takes(0), jobs.Options{Await: []string{"x"}, AwaitTimeout: time.Hour}), func(s *scene) {
				facts := coretest.Watch(s.t, s.sink, "job.*")
				s.raise("go", "")
				awaits := s.Awaiting()
				synctest.Wait()
				assert.Equal(t, 1, awaits.Stats().Running)
				require.NoError(s.t, end(s))
				synctest.Wait()
				assert.EqualValues(t, 1, awaits.Stats().Cancelled)
				facts.None()
				s.raise("go", "")
				assert.Empty(t, s.noted())
			})
		})
	}
}

// Fault avoided: runs that did not fit into the queue piled up without bound. Now such a run is
// rejected with a signal, and the raiser does not wait. If an accepted run finds the queue full
// later, it waits for room, in front of later runs.
func TestFullQueues(t *testing.T) {
	stage(t, core.Options{MaxConcurrency: 1, MaxQueued: 1, MaxSuspended: 2}, func(s *scene) []jobs.Job {
		return []jobs.Job{jobs.On("go", s.does("go", time.Second), jobs.Options{}), jobs.On("wait", s.does("wait", time.Second), jobs.Options{Await: []string{"x"}})}
	}, func(s *scene) {
		facts := coretest.Watch(s.t, s.sink, "job.rejected:*")
		s.raise("go", "1", "2", "3", "4")
		s.raise("wait", "5", "6", "7")
		for i, signal := range facts.ExpectExactly("job.rejected:go", "job.rejected:go", "job.rejected:wait") {
			f, ok := jobs.Rejected.From(signal)
			require.True(s.t, ok)
			assert.ErrorIs(s.t, f.Err, core.ErrFull)
			assert.Equal(s.t, []string{"3", "4", "7"}[i], signal.Key)
		}
		s.raise("x", "")
		synctest.Wait()         // 5 has the place of its class in the queue, and 6 waits for this place
		s.raise("go", "8", "9") // 8 is behind 6, and then no more runs may wait
		assert.Equal(s.t, "9", facts.ExpectExactly("job.rejected:go")[0].Key)
		require.NoError(s.t, s.Drain(s.t.Context()))
		assert.Equal(s.t, []string{"0s go 1", "1s go 2", "2s wait 5", "3s wait 6", "4s go 8"}, s.noted())
		assert.EqualValues(s.t, 5, s.Stats().Enqueued)
	})
}

// Fault avoided: a job could not find the operation that had started it. A handler finds the
// operation of its trigger, and the values that this has stored.
func TestFollowersFindTheOperation(t *testing.T) {
	stage(t, core.Options{}, func(s *scene) []jobs.Job {
		return []jobs.Job{
			jobs.On("go", func(ctx context.Context, _ signals.Signal) error {
				core.OperationFrom(ctx).Set("path", "a.png")
				return nil
			}, jobs.Options{EmitOnComplete: "saved"}),
			jobs.On("saved", func(ctx context.Context, signal signals.Signal) error {
				source, ok := s.Lookup(signal.Operation)
				path, _ := core.Value[string](source, "path")
				s.note("%t %s %s, parent %t", ok, path, strings.Join(signal.Path(), ">"), core.OperationFrom(ctx).Parent() == signal.Operation)
				return nil
			}, jobs.Options{}),
		}
	}, func(s *scene) {
		s.raise("go", "")
		s.expect("0s true a.png go>saved, parent true")
	})
}

// Fault avoided: jobs that start each other ran for ever, and so did dead-letter jobs about
// themselves.
func TestCyclesEnd(t *testing.T) {
	var blocked atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{OnBlocked: func(signals.Signal, signals.BlockReason) { blocked.Add(1) }}})
		do := func(context.Context, signals.Signal) error { return errDown }
		again := func(ctx context.Context, s signals.Signal) error {
			f, _ := jobs.Failed.From(s)
			assert.False(t, f.Run.Raise(core.OperationFrom(ctx)), "a cycle")
			return errDown
		}
		r, err := jobs.New(sink, []jobs.Job{jobs.On("ping", do, jobs.Options{EmitOnStart: "pong"}), jobs.On("pong", do, jobs.Options{EmitOnStart: "ping"}),
			jobs.On("job.*", again, jobs.Options{Name: "letters"})}, core.Options{})
		require.NoError(t, err)
		defer r.Close()
		sink.Raise("ping")
		require.NoError(t, r.WaitIdle(t.Context()))
		assert.EqualValues(t, 3, blocked.Load(), "ping because of ping, and what the letters raise again")
		assert.EqualValues(t, 4, r.Stats().Enqueued, "ping, pong, and a letter about each; none about letters")
	})
}

type quotaError struct{ error }

// Fault avoided: errors were reported under the name of a wrapper.
func TestNamesOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"fs.PathError":                  fmt.Errorf("cannot read: %w", &fs.PathError{Op: "open", Path: "a", Err: fs.ErrNotExist}),
		"errors.errorString":            errDown,
		"fmt.wrapErrors":                fmt.Errorf("%w, %w", errDown, errDown),
		"jobs_test.quotaError":          quotaError{errDown},
		"timeout":                       fmt.Errorf("slow: %w", core.ErrTimeout),
		"core.PanicError":               nil,
		"context.deadlineExceededError": context.DeadlineExceeded,
	} {
		stage(t, core.Options{}, one("go", func(*scene) core.Handler {
			return func(context.Context, signals.Signal) error {
				if err == nil {
					panic("on purpose")
				}
				return err
			}
		}, jobs.Options{MaxRetries: 1, RetryIf: func(error) bool { return false }}), func(s *scene) {
			facts := coretest.Watch(s.t, s.sink, "job.failed:*")
			s.raise("go", "")
			synctest.Wait()
			f, ok := jobs.Failed.From(facts.ExpectExactly("job.failed:go:" + want)[0])
			require.True(t, ok)
			assert.Equal(t, 1, f.Attempt)
			assert.Equal(t, "go", f.Run.Job)
			assert.EqualValues(t, 1, s.Stats().Failed)
			if err != nil {
				assert.Equal(t, err, f.Err)
			}
		})
	}
}

// Fault avoided: a handler that ignores its context never timed out. The attempt has failed
// when it returns.
func TestTimeoutOfADeafHandler(t *testing.T) {
	for _, result := range []error{nil, errDown} {
		stage(t, core.Options{}, one("go", takes(time.Minute, result), jobs.Options{Timeout: time.Second}), func(s *scene) {
			facts := coretest.Watch(s.t, s.sink, "job.failed:*")
			s.raise("go", "")
			time.Sleep(time.Minute)
			synctest.Wait()
			f, _ := jobs.Failed.From(facts.ExpectExactly("job.failed:go:timeout")[0])
			assert.ErrorIs(t, f.Err, core.ErrTimeout)
			assert.ErrorIs(t, f.Err, context.DeadlineExceeded)
			assert.Equal(t, result != nil, errors.Is(f.Err, errDown))
		})
	}
}

// Fault avoided: a pause could last for ever, or overflow. Pauses double up to a limit, and are
// shortened by at most half.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		opts  jobs.Options
		pause []time.Duration
	}{
		"defaults": {jobs.Options{MaxRetries: 11}, []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000}},
		"limit":    {jobs.Options{MaxRetries: 3, RetryDelay: 2 * time.Second, MaxRetryDelay: 3 * time.Second}, []time.Duration{2000, 3000, 3000}},
		"none":     {jobs.Options{MaxRetries: 2, RetryDelay: -1}, []time.Duration{0, 0}},
		"no limit": {jobs.Options{MaxRetries: 2, RetryDelay: time.Hour, MaxRetryDelay: -1}, []time.Duration{3600_000, 7200_000}},
	} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			do := func(*scene) core.Handler {
				return func(context.Context, signals.Signal) error { times = append(times, time.Now()); return errDown }
			}
			stage(t, core.Options{MaxAge: -1}, one("go", do, c.opts), func(s *scene) {
				s.raise("go", "")
				require.NoError(s.t, s.Drain(s.t.Context()))
				require.Len(s.t, times, 1+len(c.pause))
				for i, want := range c.pause {
					got := times[i+1].Sub(times[i])
					assert.True(t, got >= want*time.Millisecond/2 && got <= want*time.Millisecond, "pause %d: got %v, want %d ms at most", i, got, want)
				}
			})
		})
	}
}

// A cancelled run is not retried, and raises no signal of a failure. Cancelling ends a pause. The
// Timeout of the coordinator is a failure.
func TestCancelledRuns(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		want  []string
	}{
		"cancelled": {0, []string{"job.retry:go:1"}}, "timeout": {time.Hour, []string{"job.retry:go:1", "job.failed:go:errors.errorString"}},
	} {
		stage(t, core.Options{Timeout: c.limit}, one("go", takes(0, errDown, errDown), jobs.Options{MaxRetries: 1, RetryDelay: 24 * time.Hour}), func(s *scene) {
			facts := coretest.Watch(s.t, s.sink, "job.*")
			s.raise("go", "")
			synctest.Wait()
			if c.limit == 0 {
				s.Abort(nil)
			}
			require.NoError(s.t, s.Drain(s.t.Context()))
			facts.ExpectExactly(c.want...)
			assert.EqualValues(t, 1, s.Stats().Cancelled+s.Stats().Failed, name)
		})
	}
}

// Signals that were raised before New are no triggers. After the end no subscription is left on the
// sink. DrainOn ends the intake of the runner.
func TestStartAndEnd(t *testing.T) {
	stage(t, core.Options{DrainOn: "enough"}, one("go", takes(0), jobs.Options{Await: []string{"x"}}), func(s *scene) {
		coretest.NothingLeft(s.t, s.sink, func() {
			s.raise("early", "")
			r, err := jobs.New(s.sink, one("early", takes(0), jobs.Options{Await: []string{"y"}, Pin: true})(s), core.Options{DrainOn: "never"})
			require.NoError(s.t, err)
			require.NoError(s.t, r.Drain(s.t.Context()))
			assert.Zero(t, r.Stats().Enqueued)
			r.Close()
			synctest.Wait()
		})
		s.raise("go", "1")
		s.raise("enough", "another name", "jobs")
		s.raise("go", "2")
		synctest.Wait()
		assert.False(t, s.Stats().Closed)
		s.raise("x", "")
		s.expect("0s ran 1")
		assert.True(t, s.Stats().Closed)
	})
}

func TestMermaid(t *testing.T) {
	do := func(context.Context, signals.Signal) error { return nil }
	assert.Equal(t, `flowchart LR
    t0(["a"])
    j0["a"]
    t1(["b.#42;"])
    j1["#50;nd"]
    t2(["job.failed:#42;,job.rejected:a"])
    j2["letters"]
    t0 --> j0
    j1 -->|"a"| j0
    t1 --> j1
    j0 -->|"b.#95;c"| j1
    t2 --> j2
    j0 -.->|"job.failed"| j2
    j0 -.->|"job.rejected"| j2
    j1 -.->|"job.failed"| j2
`, jobs.Mermaid(jobs.On("a", do, jobs.Options{EmitOnStart: "b._c, x"}), jobs.On("b.*", do, jobs.Options{Name: "2nd", EmitOnFailure: "a"}),
		jobs.On("job.failed:*,job.rejected:a", do, jobs.Options{Name: "letters"})))
}

// CancelOn refuses runs: when their trigger is raised, and when their awaited signals have come.
func TestCancelOn(t *testing.T) {
	stage(t, core.Options{CancelOn: "stop"}, one("go", takes(0), jobs.Options{Await: []string{"x"}}), func(s *scene) {
		facts := coretest.Watch(s.t, s.sink, "job.*")
		s.raise("go", "1")
		release := s.sink.Hold("stop", "", 0)
		s.raise("x", "")
		synctest.Wait()
		f, _ := jobs.Rejected.From(facts.ExpectExactly("job.rejected:go")[0])
		assert.ErrorAs(t, f.Err, new(*core.RefusedError))
		assert.Equal(t, "1", f.Run.Signal.Key)
		assert.EqualValues(t, 1, s.Awaiting().Stats().Failed)
		release()
		s.raise("go", "2")
		s.expect("0s ran 2")
	})
}

// WaitIdle waits for chains of jobs, even if a job in the chain awaits signals.
func TestWaitIdle(t *testing.T) {
	stage(t, core.Options{}, func(s *scene) []jobs.Job {
		return []jobs.Job{
			jobs.On("a", s.does("a", time.Second), jobs.Options{EmitOnComplete: "b"}),
			jobs.On("b", func(context.Context, signals.Signal) error {
				time.AfterFunc(time.Hour, func() { s.sink.Raise("ready") })
				return nil
			}, jobs.Options{EmitOnComplete: "c"}),
			jobs.On("c", s.does("c", time.Second), jobs.Options{Await: []string{"ready"}, EmitOnComplete: "d"}),
			jobs.On("d", s.does("d", time.Second), jobs.Options{}),
		}
	}, func(s *scene) {
		s.raise("a", "")
		require.NoError(s.t, s.WaitIdle(s.t.Context()))
		s.expect("0s a ", "1h0m1s c ", "1h0m2s d ")
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		s.raise("c", "")
		s.sink.Retract("ready")
		s.noted()
		s.raise("c", "")
		assert.ErrorIs(t, s.WaitIdle(ctx), context.DeadlineExceeded)
	})
}

// hopeless is an error of another package that says that it is permanent, or that it is not.
type hopeless bool

func (h hopeless) Error() string   { return "hopeless" }
func (h hopeless) Permanent() bool { return bool(h) }

// job.failed says why there is no other attempt. A permanent error is not retried, even if it is
// wrapped.
func TestFailedSaysWhy(t *testing.T) {
	many := jobs.Options{MaxRetries: 2, RetryIf: func(err error) bool { return !errors.Is(err, fs.ErrExist) }}
	wrapped := fmt.Errorf("call: %w", hopeless(true))
	for want, c := range map[string]struct {
		opts core.Options
		job  jobs.Options
		do   core.Handler
	}{
		"1: the error is permanent":                     {job: many, do: func(context.Context, signals.Signal) error { return wrapped }},
		"3: no retries are left: MaxRetries is 2":       {job: many, do: func(context.Context, signals.Signal) error { return hopeless(false) }},
		"1: no retries are left: MaxRetries is 0":       {do: func(context.Context, signals.Signal) error { return errDown }},
		"1: RetryIf does not retry the error":           {job: many, do: func(context.Context, signals.Signal) error { return fs.ErrExist }},
		"1: a handler that panics is not tried again":   {job: many, do: func(context.Context, signals.Signal) error { panic("on purpose") }},
		"1: the run took longer than the Runner allows": {job: many, opts: core.Options{Timeout: time.Second}, do: func(ctx context.Context, _ signals.Signal) error { <-ctx.Done(); return errDown }},
	} {
		stage(t, c.opts, func(*scene) []jobs.Job { return []jobs.Job{jobs.On("go", c.do, c.job)} }, func(s *scene) {
			var got []string
			jobs.Failed.Subscribe(s.sink, func(_ signals.Signal, f jobs.Failure) { got = append(got, fmt.Sprintf("%d: %s", f.Attempt, f.Reason)) })
			jobs.Retry.Subscribe(s.sink, func(_ signals.Signal, f jobs.Failure) { assert.Empty(t, f.Reason) })
			s.raise("go", "")
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.Equal(t, []string{want}, got)
		})
	}
}

// Only a job with a limit needs a class, and there are at most 64.
func TestManyJobs(t *testing.T) {
	many := func(limited, unlimited int) error {
		var all []jobs.Job
		for i := range limited + unlimited {
			limit := 0
			if i >= limited {
				limit = -1
			}
			all = append(all, jobs.On("go", func(context.Context, signals.Signal) error { return nil }, jobs.Options{Name: fmt.Sprint(i), MaxConcurrency: limit}))
		}
		r, err := jobs.New(signals.NewSink(signals.SinkOptions{}), all, core.Options{})
		if err == nil {
			err = r.Close()
		}
		return err
	}
	assert.NoError(t, many(64, 200))
	assert.EqualError(t, many(65, 1), "jobs: 65 jobs have MaxConcurrency, at most 64 may")
}
