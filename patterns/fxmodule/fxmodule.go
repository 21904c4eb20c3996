package fxmodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.uber.org/fx"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// group is the value group of the jobs.
const group = "ephemeral.jobs"

// Module provides the sink of the program and a [jobs.Runner] for all jobs that [Jobs] adds.
// It starts the runner with the program. The sink is opts.Sink, or a new [signals.Sink]. Opts
// are the options of [jobs.New]. Jobs of one signal run in the order of their priority, and
// then of their names. There may be no jobs. Use Module once in a program.
func Module(opts core.Options) fx.Option {
	return fx.Module("ephemeral",
		fx.Provide(
			func() *signals.Sink { return cmp.Or(opts.Sink, signals.NewSink(signals.SinkOptions{})) },
			fx.Annotate(func(lc fx.Lifecycle, sink *signals.Sink, sets [][]jobs.Job) (*jobs.Runner, error) {
				all := slices.Concat(sets...)
				slices.SortFunc(all, func(a, b jobs.Job) int {
					return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(cmp.Or(a.Name, a.Trigger), cmp.Or(b.Name, b.Trigger)))
				})
				r, err := jobs.New(sink, all, opts)
				if err != nil {
					return nil, err
				}
				r.Pause()
				lc.Append(fx.StartStopHook(r.Resume, func(ctx context.Context) error { return end(ctx, r, r.Close) }))
				return r, nil
			}, fx.ParamTags("", "", `group:"`+group+`"`)),
		),
		fx.Invoke(func(*jobs.Runner) {}),
	)
}

// Jobs adds jobs to the runner of the program. Each constructor is a function with any
// parameters that returns []jobs.Job, or []jobs.Job and an error. Jobs may be used many times
// in a program. If two jobs have the same name, fx.New reports an error.
func Jobs(constructors ...any) fx.Option {
	var all []fx.Option
	for _, c := range constructors {
		if t := reflect.TypeOf(c); t == nil || t.Kind() != reflect.Func || t.NumOut() == 0 || t.Out(0) != reflect.TypeFor[[]jobs.Job]() {
			return fx.Error(fmt.Errorf("fxmodule: Jobs needs functions that return []jobs.Job, not %T", c))
		}
		all = append(all, fx.Provide(fx.Annotate(c, fx.ResultTags(`group:"`+group+`"`))))
	}
	return fx.Options(all...)
}

// Coordinator provides the C that a constructor returns, and ends it when the program stops. C
// is a coordinator, or a type that is built on one. If name is not "", parameters need the tag
// `name:"..."` to get the C. The constructor is a function with any parameters that returns a C,
// or a C and an error.
func Coordinator[C core.Lifecycle](name string, constructor any) fx.Option {
	return provide(name, constructor, func(c C, lc fx.Lifecycle, _ fx.Shutdowner) {
		lc.Append(fx.StopHook(func(ctx context.Context) error { return end(ctx, c, c.Close) }))
	})
}

// Queue provides the *durable.Queue that a constructor returns, like [Coordinator]. It calls Run
// when the program starts, and ends the queue when the program stops. If Run returns an error
// before that, the program is shut down with the exit code 1. For a process that only adds items,
// provide the queue without this function.
func Queue[Q interface {
	Run(ctx context.Context) error
	Here() core.Inspector
	Close() error
}](name string, constructor any) fx.Option {
	return provide(name, constructor, func(q Q, lc fx.Lifecycle, program fx.Shutdowner) {
		ran := make(chan error, 1)
		lc.Append(fx.StartStopHook(func() {
			go func() {
				err := q.Run(context.Background())
				if ran <- err; err != nil {
					program.Shutdown(fx.ExitCode(1))
				}
			}()
		}, func(ctx context.Context) error {
			return end(ctx, q.Here(), func() error { return errors.Join(q.Close(), <-ran) })
		}))
	})
}

// provide provides what a constructor returns, after attach has added its hooks.
func provide[C any](name string, constructor any, attach func(C, fx.Lifecycle, fx.Shutdowner)) fx.Option {
	tag, made := "", fmt.Sprintf(`name:"ephemeral.made.%s"`, name)
	if name != "" {
		tag = fmt.Sprintf(`name:"%s"`, name)
	}
	return fx.Provide(
		fx.Annotate(constructor, fx.ResultTags(made)),
		fx.Annotate(func(c C, lc fx.Lifecycle, program fx.Shutdowner) C {
			attach(c, lc, program)
			return c
		}, fx.ParamTags(made, "", ""), fx.ResultTags(tag)))
}

// reserve is the time before the deadline of the program that is left to the stop hooks of other
// parts, such as databases.
const reserve = 5 * time.Second

// end drains a part, and then closes it. If there is a deadline, the part is drained until reserve
// before it, and has a fifth of the reserve to close. If the time is short, half of it is the
// reserve. The error of [core.Shutdown] says what is stuck.
func end(ctx context.Context, part core.Lifecycle, close func() error) error {
	drain, patience := ctx, ctx
	if deadline, ok := ctx.Deadline(); ok {
		keep := min(reserve, time.Until(deadline)/2)
		var cancel, stop func()
		drain, cancel = context.WithDeadline(ctx, deadline.Add(-keep))
		defer cancel()
		patience, stop = context.WithDeadline(ctx, deadline.Add(-keep/5*4))
		defer stop()
	}
	err, closed := core.Shutdown(drain, part), make(chan error, 1)
	go func() { closed <- close() }()
	select {
	case failed := <-closed:
		return errors.Join(err, failed)
	case <-patience.Done():
		return errors.Join(err, fmt.Errorf("fxmodule: %T was not closed in time: %w", part, context.Cause(patience)))
	}
}

// Scoped makes a handler that opens a scope for each attempt, calls do, and passes the error
// of do to the function close of the scope. With nil, close commits. If do panics, close gets
// an error. If close returns an error, the attempt fails. Close is called before the run
// pauses, and before it raises its signals of completion or failure. So handlers of these
// signals find the data that was committed.
func Scoped[S any](open func(context.Context) (scope S, close func(error) error, err error), do func(context.Context, signals.Signal, S) error) core.Handler {
	return func(ctx context.Context, s signals.Signal) (err error) {
		scope, end, err := open(ctx)
		if err != nil {
			return err
		}
		err = errPanicked // unless do returns
		defer func() {
			if failed := end(err); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
		err = do(ctx, s, scope)
		return err
	}
}

var errPanicked = errors.New("fxmodule: the handler panicked")
