package fxmodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/fx"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// group is the value group of the jobs.
const group = "ephemeral.jobs"

// Module provides the sink of the program, that of opts or a new [core.Sink], and a [jobs.Runner] of all jobs that
// [Jobs] adds, and starts the runner with the program. Its jobs are in the order of their
// priority and name. A program without jobs is not built.
func Module(opts core.Options) fx.Option {
	return fx.Module("ephemeral",
		fx.Provide(
			func() *core.Sink { return cmp.Or(opts.Sink, core.NewSink(core.SinkOptions{})) },
			fx.Annotate(func(lc fx.Lifecycle, sink *core.Sink, sets [][]jobs.Job) (*jobs.Runner, error) {
				all := slices.Concat(sets...)
				slices.SortFunc(all, func(a, b jobs.Job) int {
					return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(cmp.Or(a.Name, a.Trigger), cmp.Or(b.Name, b.Trigger)))
				})
				r, err := jobs.New(sink, all, opts)
				if err != nil {
					return nil, err
				}
				r.Pause()
				lc.Append(fx.StartStopHook(r.Resume, func(ctx context.Context) error { return end(ctx, r) }))
				return r, nil
			}, fx.ParamTags("", "", `group:"`+group+`"`)),
		),
		fx.Invoke(func(*jobs.Runner) {}),
	)
}

// Jobs adds jobs to the runner of the program. Each constructor is a function with any
// parameters that returns []jobs.Job, or that and an error. Modules may add jobs independently;
// two of the same name are an error.
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

// Coordinator provides what a constructor returns, a coordinator or what is built on one, and
// ends it with the program. With a name, parameters ask for it with the tag `name:"..."`; ""
// means by its type alone. The constructor is a function with any parameters that returns a C,
// or that and an error.
func Coordinator[C core.Lifecycle](name string, constructor any) fx.Option {
	tag, made := "", fmt.Sprintf(`name:"ephemeral.made.%s"`, name)
	if name != "" {
		tag = fmt.Sprintf(`name:"%s"`, name)
	}
	return fx.Provide(
		fx.Annotate(constructor, fx.ResultTags(made)),
		fx.Annotate(func(c C, lc fx.Lifecycle) C {
			lc.Append(fx.StopHook(func(ctx context.Context) error { return end(ctx, c) }))
			return c
		}, fx.ParamTags(made, ""), fx.ResultTags(tag)))
}

// end drains what is ended with the deadline of the program, and then closes it.
func end(ctx context.Context, c core.Lifecycle) error { return errors.Join(c.Drain(ctx), c.Close()) }

// Scoped makes a handler that opens a scope for each attempt, and closes it with the error of
// do, nil to commit. It is closed before the run pauses or raises its signals of completion or
// failure, so that these find what was committed. An error of close makes the attempt fail; a
// panic of do closes the scope as well, with an error.
func Scoped[S any](open func(context.Context) (scope S, close func(error) error, err error), do func(context.Context, core.Signal, S) error) core.Handler {
	return func(ctx context.Context, s core.Signal) (err error) {
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
