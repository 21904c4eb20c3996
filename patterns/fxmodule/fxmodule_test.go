package fxmodule_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/fxmodule"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

func noting(notes *[]string, note string) core.Handler {
	return func(context.Context, signals.Signal) error { *notes = append(*notes, note); return nil }
}

// Fault avoided: the runner was built only if some code asked for it, and registering jobs
// twice made two runners, of which one worked. And signals during the start of the program
// started runs before the parts that their handlers need.
func TestModule(t *testing.T) {
	var notes []string
	sink := signals.NewSink(signals.SinkOptions{})
	var closed []string
	sink.Subscribe("coordinator.closed", func(s signals.Signal) { closed = append(closed, s.Key) })
	job := func(name string, priority int) jobs.Job {
		return jobs.On("go", noting(&notes, name), jobs.Options{Name: name, Priority: priority, Key: fixedKey("k")})
	}
	var uploads *core.Coordinator[string]
	app := fx.New(fx.NopLogger,
		fxmodule.Module(core.Options{Name: "app", Sink: sink}),
		fxmodule.Jobs(func() []jobs.Job { return []jobs.Job{job("c", 1), job("b", 1)} },
			func(c *core.Coordinator[int]) ([]jobs.Job, error) { return []jobs.Job{job("a", 1)}, nil }),
		fxmodule.Jobs(func() []jobs.Job { return []jobs.Job{job("first", 0)} }),
		fxmodule.Coordinator[*core.Coordinator[int]]("", func(sink *signals.Sink, lc fx.Lifecycle) (*core.Coordinator[int], error) {
			lc.Append(fx.StartHook(func() { notes = append(notes, "started") }))
			return core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{Name: "needed", Sink: sink})
		}),
		fxmodule.Coordinator[*core.Coordinator[string]]("uploads", func() *core.Coordinator[string] {
			return core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "uploads", Sink: sink}))
		}),
		fx.Invoke(fx.Annotate(func(c *core.Coordinator[string]) { uploads = c }, fx.ParamTags(`name:"uploads"`))),
		fx.Invoke(func(s *signals.Sink, r *jobs.Runner) {
			assert.Same(t, sink, s)
			assert.Equal(t, "app", r.Name())
		}),
	)
	require.NoError(t, app.Err())
	sink.Raise("go")
	require.NoError(t, app.Start(t.Context()))
	require.NoError(t, app.Stop(t.Context()))
	assert.Equal(t, []string{"started", "first", "a", "b", "c"}, notes, "by priority and name, after what a handler needs has started")
	assert.Equal(t, []string{"uploads", "app", "needed"}, closed, "jobs see the last signals, and have what they need")
	_, err := uploads.Enqueue(t.Context(), "late")
	assert.ErrorIs(t, err, core.ErrClosed)
}

// When the program stops, runs are drained until its deadline, and then closed.
func TestStopHasTheDeadlineOfTheProgram(t *testing.T) {
	cancelled := make(chan struct{})
	var sink *signals.Sink
	app := fx.New(fx.NopLogger, fxmodule.Module(core.Options{}), fx.Populate(&sink),
		fxmodule.Jobs(func() []jobs.Job {
			return []jobs.Job{jobs.On("go", func(ctx context.Context, _ signals.Signal) error {
				<-ctx.Done()
				close(cancelled)
				return ctx.Err()
			}, jobs.Options{})}
		}))
	require.NoError(t, app.Start(t.Context()))
	sink.Raise("go")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, app.Stop(ctx), context.DeadlineExceeded)
	<-cancelled
}

// Mistakes are errors when the program is built.
func TestErrors(t *testing.T) {
	do := func(context.Context, signals.Signal) error { return nil }
	for want, opts := range map[string]fx.Option{
		"the name is used twice": fxmodule.Jobs(func() []jobs.Job {
			return []jobs.Job{jobs.On("a", do, jobs.Options{}), jobs.On("a", do, jobs.Options{})}
		}),
		"on purpose":                            fxmodule.Jobs(func() ([]jobs.Job, error) { return nil, errors.New("on purpose") }),
		"functions that return []jobs.Job, not": fxmodule.Jobs(func() jobs.Job { return jobs.Job{} }),
	} {
		assert.ErrorContains(t, fx.New(fx.NopLogger, fxmodule.Module(core.Options{}), opts).Err(), want)
	}
}

// Fault avoided: the scope of a handler was open during the pause after a failure, and while
// the signals of completion were raised. Now the scope is closed before that, with the error
// of the attempt.
func TestScoped(t *testing.T) {
	errDown, errCommit := errors.New("down"), errors.New("commit")
	for name, c := range map[string]struct {
		open, do, commit error
		panics           bool
		want             []string
	}{
		"committed":     {nil, nil, nil, false, []string{"open", "do 7", "close <nil>", "done"}},
		"rolled back":   {nil, errDown, nil, false, []string{"open", "do 7", "close down", "job.retry:go:1", "open", "do 7", "close down", "job.failed:go:errors.errorString"}},
		"commit fails":  {nil, nil, errCommit, false, []string{"open", "do 7", "close <nil>", "job.retry:go:1", "open", "do 7", "close <nil>", "job.failed:go:errors.joinError"}},
		"open fails":    {errDown, nil, nil, false, []string{"open", "job.retry:go:1", "open", "job.failed:go:errors.errorString"}},
		"handler panic": {nil, nil, nil, true, []string{"open", "do 7", "close fxmodule: the handler panicked", "job.failed:go:core.PanicError"}},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			sink := signals.NewSink(signals.SinkOptions{})
			defer sink.Subscribe("done, job.*", func(s signals.Signal) { notes = append(notes, s.Name) })()
			open := func(context.Context) (int, func(error) error, error) {
				notes = append(notes, "open")
				return 7, func(err error) error {
					text := "<nil>"
					if err != nil {
						text = err.Error()
					}
					notes = append(notes, "close "+text)
					return c.commit
				}, c.open
			}
			do := fxmodule.Scoped(open, func(_ context.Context, _ signals.Signal, scope int) error {
				notes = append(notes, "do "+string(rune('0'+scope)))
				if c.panics {
					panic("on purpose")
				}
				return c.do
			})
			r, err := jobs.New(sink, []jobs.Job{jobs.On("go", do, jobs.Options{MaxRetries: 1, RetryDelay: 1, EmitOnComplete: "done"})}, core.Options{})
			require.NoError(t, err)
			defer r.Close()
			sink.Raise("go")
			require.NoError(t, r.Drain(t.Context()))
			assert.Equal(t, c.want, notes)
		})
	}
}

// queue is like a *durable.Queue: it runs until it is drained or closed.
type queue struct {
	*core.Coordinator[int]
	fails error
	ran   chan struct{}
}

func (q *queue) Here() core.Inspector { return q.Coordinator }

func (q *queue) Run(context.Context) error {
	if q.fails != nil {
		return q.fails
	}
	done := make(chan struct{})
	defer q.OnClosed(func() { close(done) })()
	<-done
	close(q.ran)
	return nil
}

// A part that is stuck is named, and the hooks of other parts still have their time. A program
// needs no jobs.
func TestAStuckPartIsNamedAndOtherHooksHaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		stuck := func(context.Context, int) error { <-free; return nil } // it ignores its context
		var left time.Duration
		var c *core.Coordinator[int]
		q := &queue{ran: make(chan struct{})}
		app := fx.New(fx.NopLogger, fxmodule.Module(core.Options{}),
			fx.Invoke(func(lc fx.Lifecycle) { // a database, for example
				lc.Append(fx.StopHook(func(ctx context.Context) {
					deadline, _ := ctx.Deadline()
					left = time.Until(deadline)
				}))
			}),
			fxmodule.Queue[*queue]("", func() *queue {
				q.Coordinator = core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, core.Options{Name: "mails"}))
				return q
			}),
			fxmodule.Coordinator[*core.Coordinator[int]]("", func(*queue) *core.Coordinator[int] {
				return core.Must(core.NewCoordinator(stuck, core.Options{Name: "orders"}))
			}),
			fx.Populate(&c))
		require.NoError(t, app.Start(t.Context()))
		core.Must(c.Enqueue(t.Context(), 1))
		core.Must(q.Enqueue(t.Context(), 2))
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		err := app.Stop(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, `core: "orders" is closed before it is drained: context deadline exceeded`)
		assert.ErrorContains(t, err, " is running")
		assert.ErrorContains(t, err, "*core.Coordinator[int] was not closed in time")
		assert.ErrorContains(t, err, `core: "mails" is closed before it is drained`)
		<-q.ran
		assert.Equal(t, 2*time.Second, left, "of 15: 10 s to drain orders and 1 s to close it, then 2 s for mails, which ends at once when it is closed")
		close(free)
	})
}

// A queue whose Run fails ends the program.
func TestAQueueThatFailsEndsTheProgram(t *testing.T) {
	errDown := errors.New("down")
	app := fx.New(fx.NopLogger, fxmodule.Module(core.Options{}),
		fxmodule.Queue[*queue]("mails", func() *queue {
			return &queue{fails: errDown, Coordinator: core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{}))}
		}),
		fx.Invoke(fx.Annotate(func(*queue) {}, fx.ParamTags(`name:"mails"`))))
	require.NoError(t, app.Start(t.Context()))
	assert.Equal(t, 1, (<-app.Wait()).ExitCode)
	assert.ErrorIs(t, app.Stop(t.Context()), errDown)
}

func fixedKey(key string) func(signals.Signal) string {
	return func(signals.Signal) string { return key }
}
