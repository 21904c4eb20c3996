package earlyexit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// job is an item that is its own work.
type job func(ctx context.Context) (int, error)

func run(ctx context.Context, j job) (int, error) { return j(ctx) }

// gives returns n after a while.
func gives(n int, after time.Duration) job {
	return func(context.Context) (int, error) { time.Sleep(after); return n, nil }
}

func raises(ctx context.Context) (int, error) {
	core.OperationFrom(ctx).Raise("verdict.guilty")
	return 3, nil
}

type combine = func(signals.Signal, []int) (int, error)

// collector makes a collector and gives it items.
func collector(t testing.TB, combine combine, opts core.Options, jobs ...job) *earlyexit.Collector[job, int] {
	t.Helper()
	c := core.Must(earlyexit.New(run, "verdict.*", combine, opts))
	for _, j := range jobs {
		_, err := c.TryEnqueue(context.Background(), j)
		check(t, "TryEnqueue", err, nil)
	}
	return c
}

func checkOutcome(t testing.TB, got earlyexit.Outcome[int], signal string, want ...int) {
	t.Helper()
	check(t, "exited", got.Exited, signal != "")
	check(t, "signal", got.Signal.Name, signal)
	coretest.Check(t, slices.Equal(got.Results, want), "got results %v, want %v", got.Results, want)
}

func checkExited(t testing.TB, err error, signal string) {
	t.Helper()
	exited, ok := errors.AsType[*earlyexit.ExitedError](err)
	if !ok || exited.Signal.Name != signal || !errors.Is(err, core.ErrClosed) || !strings.Contains(err.Error(), signal) {
		t.Errorf("got error %v, want an ExitedError because of %s", err, signal)
	}
}

// check compares values, and errors with errors.Is.
func check(t testing.TB, what string, got, want any) {
	t.Helper()
	if err, ok := got.(error); got != want && (!ok || want == nil || !errors.Is(err, want.(error))) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The results are the results of successful items, in the order of the items, even of items
// that have left the window. Combine gets a copy of them once. Each caller gets a copy,
// too.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *earlyexit.Collector[job, int]
		calls := 0
		c = collector(t, func(exit signals.Signal, results []int) (int, error) {
			check(t, "signal", exit.Name, "")
			calls++
			c.Sink().Raise("verdict.while-combining") // this signal has no effect, and no lock is held
			clear(results)
			return len(results), nil
		}, core.Options{MaxConcurrency: 5, MaxTracked: -1}, gives(1, 3), gives(2, 2), gives(3, 1),
			func(context.Context) (int, error) { return 5, errOnPurpose }, func(context.Context) (int, error) { panic(errOnPurpose) },
			func(context.Context) (int, error) {
				_, err := c.Results(context.Background())
				check(t, "Results", err, core.ErrWouldDeadlock)
				return 4, nil
			})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				outcome, err := c.Results(t.Context())
				check(t, "Results", err, nil)
				checkOutcome(t, outcome, "", 1, 2, 3, 4)
				check(t, "combined", outcome.Combined, 4)
				clear(outcome.Results)
			})
		}
		all.Wait()
		check(t, "calls of combine", calls, 1)
		_, err := c.Enqueue(t.Context(), raises)
		check(t, "late", errors.Is(err, core.ErrClosed) && !errors.As(err, new(*earlyexit.ExitedError)), true)
	})
}

// Whenever the signal comes, the results have exactly the successful items, and later items
// get an ExitedError.
func TestExitAtAnyTime(t *testing.T) {
	for seed := range 30 {
		synctest.Test(t, func(t *testing.T) {
			c := collector(t, nil, core.Options{MaxConcurrency: 1 + seed%4, MaxQueued: 1 + seed%7})
			var all sync.WaitGroup
			for _, enqueue := range []func(context.Context, job) (core.OperationID, error){c.Enqueue, c.TryEnqueue} {
				all.Go(func() {
					var err error
					for i := 0; err == nil || errors.Is(err, core.ErrFull); i++ {
						_, err = enqueue(context.Background(), func(ctx context.Context) (int, error) {
							time.Sleep(time.Duration(i%4) * time.Millisecond)
							return i, []error{ctx.Err(), nil}[i%2] // some succeed in spite of the signal
						})
						time.Sleep(time.Millisecond)
					}
					checkExited(t, err, "verdict.guilty")
				})
			}
			time.Sleep(time.Duration(seed) * time.Millisecond)
			c.Sink().Raise("verdict.guilty")
			all.Wait()
			outcome, err := c.Results(t.Context())
			check(t, "Results", err, nil)
			check(t, "results", uint64(len(outcome.Results)), c.Stats().Succeeded)
			check(t, "books", coretest.CheckBooks(c.Stats()), nil)
		})
	}
}

// Work does not begin if the signal comes between the start of its operation and its body.
func TestSignalBeforeTheBodyBegins(t *testing.T) {
	c := collector(t, nil, core.Options{})
	c.Sink().Subscribe(signals.SignalStarted, func(signals.Signal) { c.Sink().Raise("verdict.guilty") })
	_, err := c.TryEnqueue(t.Context(), func(context.Context) (int, error) { t.Error("began"); return 1, nil })
	check(t, "TryEnqueue", err, nil)
	outcome, err := c.Results(t.Context())
	check(t, "Results", err, nil)
	checkOutcome(t, outcome, "verdict.guilty")
}

// Fault: the work closed the collector, Close waited for a handler of the exit, and that
// handler waited for the work.
func TestCloseFromTheWorkWhileAHandlerOfTheExitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *earlyexit.Collector[job, int]
		c = collector(t, nil, core.Options{}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 1, c.Close() })
		defer c.Sink().Subscribe(earlyexit.SignalExited, func(signals.Signal) { check(t, "Flush", c.Flush(t.Context()), nil) })()
		synctest.Wait()
		c.Sink().Raise("verdict.guilty")
	})
}

// The results come with the error. Results stops waiting for combine when its context ends.
func TestFailingCombinerIsAnErrorNotAHang(t *testing.T) {
	for name, fails := range map[string]func() (int, error){
		"error":  func() (int, error) { return 7, errOnPurpose },
		"panic":  func() (int, error) { panic(errOnPurpose) },
		"goexit": func() (int, error) { runtime.Goexit(); return 0, nil }, // ends the goroutine that combines
	} {
		synctest.Test(t, func(t *testing.T) {
			c := collector(t, func(signals.Signal, []int) (int, error) { time.Sleep(2 * time.Second); return fails() }, core.Options{}, raises)
			go func() { _, _ = c.Results(context.Background()) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Results(ctx)
			check(t, name, err, context.DeadlineExceeded)
			synctest.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
			outcome, err := c.Results(ctx) // the outcome is there, so the context does not count
			checkOutcome(t, outcome, "verdict.guilty", 3)
			check(t, name, outcome.Combined, 0)
			check(t, name, errors.As(err, new(*core.PanicError)), name != "error")
			check(t, name, errors.Is(err, errOnPurpose), name != "goexit")
		})
	}
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	refusal := func(work core.ResultWork[job, int], exitOn string, opts core.Options) error {
		_, err := earlyexit.New(work, exitOn, nil, opts)
		return err
	}
	for want, err := range map[string]error{
		"earlyexit: there must be work":        refusal(nil, "verdict.*", core.Options{}),
		`earlyexit: exitOn is " ,\t,"`:         refusal(run, " ,\t,", core.Options{}),
		"earlyexit: Options.Lanes and Classes": refusal(run, "verdict.*", core.Options{Classes: []core.Class{{Name: "a"}}}),
		"earlyexit: core: Options.StopOnError": refusal(run, "verdict.*", core.Options{StopOnError: true}),
	} {
		check(t, want, strings.Contains(fmt.Sprint(err), want), true)
	}
	check(t, "name", collector(t, nil, core.Options{}).Name(), "earlyexit")
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := collector(t, nil, core.Options{})
		return coretest.Subject{
			Lifecycle: c,
			Submit: func(ctx context.Context, body coretest.Body) error {
				_, err := c.Enqueue(ctx, func(ctx context.Context) (int, error) { return 0, body(ctx) })
				return err
			},
			Pause: c.Pause, Resume: c.Resume, WaitIdle: c.WaitIdle, Sink: c.Sink(), Stats: c.Stats,
		}
	})
}

// ending makes a coordinator that a verdict ends.
func ending(work core.Work[int], opts core.Options) (*core.Coordinator[int], *earlyexit.Exit) {
	opts.Sink = signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(work, opts))
	return c, earlyexit.On(c, "verdict, operation.*")
}

func TestExitCancelsWhatRunsAndDiscardsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began atomic.Int64
		c, exit := ending(func(ctx context.Context, n int) error {
			began.Add(1)
			for range n {
				<-ctx.Done()
			}
			return context.Cause(ctx)
		}, core.Options{MaxConcurrency: 3})
		facts := coretest.Watch(t, c.Sink(), earlyexit.SignalExited)
		check(t, "Do", c.Do(t.Context(), 0), nil) // its lifecycle signals match, and do not count
		for range 10 {
			_, err := c.TryEnqueue(t.Context(), 1)
			check(t, "TryEnqueue", err, nil)
		}
		synctest.Wait()
		for _, key := range []string{"the first", "counts"} {
			c.Sink().RaiseKey("verdict", key)
		}
		_, err := c.TryEnqueue(t.Context(), 1)
		check(t, "intake", err, core.ErrClosed)
		s, exited := exit.Signal()
		check(t, "exit", fmt.Sprint(s.Name, s.Key, exited), "verdictthe firsttrue")
		raised := facts.ExpectExactly(earlyexit.SignalExited)[0]
		check(t, "key and path", raised.Key+" "+strings.Join(raised.Path(), ">"), "the first verdict>"+earlyexit.SignalExited)
		check(t, "Flush", c.Flush(t.Context()), nil)
		check(t, "began", began.Load(), int64(4))
		cancelled := 0
		for op := range c.Operations(core.OperationQuery{Status: core.StatusCancelled}) {
			checkExited(t, op.Err, "verdict")
			cancelled++
		}
		check(t, "cancelled", cancelled, 10)
	})
}

// A signal has no effect before On, after Close has begun, or after everything is done.
func TestSignalsBeforeAndAfterDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(c *core.Coordinator[int]) error{
			"Complete": func(c *core.Coordinator[int]) error { c.Complete(); return nil },
			"Drain":    func(c *core.Coordinator[int]) error { return c.Drain(t.Context()) },
			"Close":    func(c *core.Coordinator[int]) error { return c.Close() },
		} {
			c, exit := ending(func(context.Context, int) error { return nil }, core.Options{})
			c.Sink().Hold("verdict.before", "", 0)
			late := earlyexit.On(c, "verdict.*")
			check(t, name, c.Do(t.Context(), 1), nil)
			check(t, name, end(c), nil)
			for _, x := range []*earlyexit.Exit{exit, late, earlyexit.On(c, "verdict")} {
				c.Sink().Raise("verdict")
				_, ok := x.Signal()
				check(t, name, ok, false)
			}
			check(t, name, c.Sink().Has(earlyexit.SignalExited), false)
		}
	})
}
