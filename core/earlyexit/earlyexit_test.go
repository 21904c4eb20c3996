package earlyexit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

// job is an item that says itself what its work is.
type job func(ctx context.Context) (int, error)

func run(ctx context.Context, j job) (int, error) { return j(ctx) }

func gives(n int) job {
	return func(context.Context) (int, error) { return n, nil }
}

func raises(name string, n int) job {
	return func(ctx context.Context) (int, error) {
		core.OperationFrom(ctx).RaiseKey(name, "the key")
		return n, nil
	}
}

// untilCancelled checks that the signal is the cause.
func untilCancelled(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

var errOnPurpose = errors.New("failed on purpose")

func collector(t testing.TB, opts core.Options) *earlyexit.Collector[job, int] {
	t.Helper()
	return combiner(t, nil, opts)
}

func combiner(t testing.TB, combine func(core.Signal, []int) (int, error), opts core.Options) *earlyexit.Collector[job, int] {
	t.Helper()
	c, err := earlyexit.New(run, "verdict.*", combine, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func enqueue(t testing.TB, c *earlyexit.Collector[job, int], jobs ...job) (ids []core.OperationID) {
	t.Helper()
	for _, j := range jobs {
		id, err := c.TryEnqueue(context.Background(), j)
		if err != nil || id == 0 {
			t.Fatalf("got id %d and error %v, want the item to be accepted", id, err)
		}
		ids = append(ids, id)
	}
	return ids
}

func results(t testing.TB, c *earlyexit.Collector[job, int]) earlyexit.Outcome[int] {
	t.Helper()
	outcome, err := c.Results(context.Background())
	if err != nil {
		t.Errorf("Results: got error %v", err)
	}
	return outcome
}

func checkOutcome(t testing.TB, got earlyexit.Outcome[int], signal string, want ...int) {
	t.Helper()
	if got.Exited != (signal != "") || got.Signal.Name != signal || !slices.Equal(got.Results, want) {
		t.Errorf("got %+v, want signal %q and results %v", got, signal, want)
	}
}

func checkExited(t testing.TB, err error, signal string) {
	t.Helper()
	exited, ok := errors.AsType[*earlyexit.ExitedError](err)
	if !ok || exited.Signal.Name != signal || !errors.Is(err, core.ErrClosed) || !strings.Contains(err.Error(), signal) {
		t.Errorf("got error %v, want an ExitedError because of %s", err, signal)
	}
}

func checkError(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func checkEqual[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// The results are in the order of the items, whichever ends first.
func TestWithoutSignalAllResultsAreCollected(t *testing.T) {
	late := func(n int) job {
		return func(context.Context) (int, error) { time.Sleep(time.Duration(10-n) * time.Second); return n, nil }
	}
	synctest.Test(t, func(t *testing.T) {
		c := combiner(t, func(exit core.Signal, results []int) (int, error) {
			checkEqual(t, "signal", exit.Name, "")
			return len(results), nil
		}, core.Options{MaxConcurrency: 5})
		defer c.Close()
		enqueue(t, c, late(1), func(context.Context) (int, error) { return 5, errOnPurpose }, late(2),
			func(context.Context) (int, error) { panic(errOnPurpose) }, late(3))
		outcome := results(t, c)
		checkOutcome(t, outcome, "", 1, 2, 3)
		checkEqual(t, "combined", outcome.Combined, 3)
		if s := c.Stats(); s.Succeeded != 3 || s.Failed != 2 {
			t.Errorf("got %v, want 3 succeeded and 2 failed", s)
		}
	})
}

func TestExitCancelsWhatRunsAndDiscardsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector(t, core.Options{MaxConcurrency: 3})
		defer c.Close()
		signals := coretest.Watch(t, c.Sink(), earlyexit.SignalExited)
		var started atomic.Int64
		enqueue(t, c, gives(1))
		synctest.Wait()
		waiting := func(ctx context.Context) (int, error) {
			started.Add(1)
			return untilCancelled(ctx)
		}
		var ids []core.OperationID
		for range 10 {
			ids = append(ids, enqueue(t, c, waiting)...)
		}
		synctest.Wait()
		c.Sink().RaiseKey("verdict.guilty", "the key")
		// The handler has done it all before Raise returns, without waiting.
		_, err := c.Enqueue(t.Context(), gives(2))
		checkExited(t, err, "verdict.guilty")
		_, err = c.TryEnqueue(context.Background(), gives(2))
		checkExited(t, err, "verdict.guilty")
		outcome := results(t, c)
		checkOutcome(t, outcome, "verdict.guilty", 1)
		checkEqual(t, "key", outcome.Signal.Key, "the key")
		checkEqual(t, "bodies started", started.Load(), 3)
		if s := c.Stats(); s.Cancelled != 10 || s.Succeeded != 1 || s.Rejected != 2 {
			t.Errorf("got %v, want 10 cancelled, 1 succeeded and 2 rejected", s)
		}
		for _, id := range ids { // the window still shows them
			op, ok := c.Lookup(id)
			if !ok || op.Status != core.StatusCancelled {
				t.Errorf("got %v, %t, want a cancelled operation", op, ok)
			}
			checkExited(t, op.Err, "verdict.guilty")
		}
		exit := signals.ExpectExactly(earlyexit.SignalExited)[0]
		checkEqual(t, "key of the exit", exit.Key, "the key")
		if got, want := exit.Path(), []string{"verdict.guilty", earlyexit.SignalExited}; !slices.Equal(got, want) {
			t.Errorf("causes of the exit: got %v, want %v", got, want)
		}
	})
}

// A worker that becomes free while the exit is under way starts nothing: here the
// exit is held up by the values of a context, which are asked for the parent.
func TestNothingStartsAfterTheSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector(t, core.Options{MaxConcurrency: 1})
		defer c.Close()
		let, ran := make(chan struct{}), false
		asking := &slowContext{Context: t.Context(), answer: make(chan struct{})}
		if _, err := c.Enqueue(asking, func(context.Context) (int, error) { <-let; return 1, nil }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		asking.slow.Store(true)
		ids := enqueue(t, c, func(context.Context) (int, error) { ran = true; return 2, nil })
		var raising sync.WaitGroup
		raising.Go(func() { c.Sink().Raise("verdict.guilty") })
		synctest.Wait()
		close(let)
		synctest.Wait()
		op, _ := c.Lookup(ids[0])
		checkEqual(t, "status", op.Status, core.StatusCancelled)
		checkExited(t, op.Err, "verdict.guilty")
		close(asking.answer)
		raising.Wait()
		checkOutcome(t, results(t, c), "verdict.guilty", 1)
		checkEqual(t, "ran", ran, false)
	})
}

type slowContext struct {
	context.Context
	slow   atomic.Bool
	answer chan struct{}
}

func (c *slowContext) Value(key any) any {
	if c.slow.Load() {
		<-c.answer
	}
	return c.Context.Value(key)
}

func TestSignalsBeforeAndAfterDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		sink.Raise("verdict.old")
		sink.Hold("verdict.standing", "", 0)
		for name, end := range map[string]func(*earlyexit.Collector[job, int]) error{
			"Drain": func(c *earlyexit.Collector[job, int]) error { return c.Drain(t.Context()) },
			"Stop": func(c *earlyexit.Collector[job, int]) error {
				return errors.Join(c.Flush(t.Context()), c.Stop(t.Context()))
			},
			"Close": func(c *earlyexit.Collector[job, int]) error { return errors.Join(c.Flush(t.Context()), c.Close()) },
		} {
			c := collector(t, core.Options{Sink: sink})
			enqueue(t, c, gives(1))
			checkError(t, name, end(c), nil)
			sink.Raise("verdict.late")
			checkOutcome(t, results(t, c), "", 1)
			_, err := c.TryEnqueue(context.Background(), gives(1))
			if errors.As(err, new(*earlyexit.ExitedError)) || !errors.Is(err, core.ErrClosed) || sink.Has(earlyexit.SignalExited) {
				t.Errorf("%s: got error %v, want just core.ErrClosed, and no exit", name, err)
			}
		}
		c := collector(t, core.Options{Sink: sink})
		enqueue(t, c, gives(1))
		c.Complete()
		synctest.Wait()
		sink.Raise("verdict.last") // before any call has waited
		checkOutcome(t, results(t, c), "verdict.last", 1)
	})
}

// Combine is called once, with no lock held, and what it and callers get is a copy.
func TestCombinesOnceAndHandsOutCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		combined := 0
		var c *earlyexit.Collector[job, int]
		c = combiner(t, func(exit core.Signal, results []int) (int, error) {
			combined++
			c.Sink().Raise("verdict.while-combining")
			greatest := slices.Max(results)
			clear(results)
			return greatest, nil
		}, core.Options{MaxConcurrency: 1})
		defer c.Close()
		enqueue(t, c, gives(7), raises("verdict.guilty", 3))
		results(t, c).Results[0] = 100
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				again := results(t, c)
				checkOutcome(t, again, "verdict.guilty", 7, 3)
				checkEqual(t, "combined", again.Combined, 7)
			})
		}
		all.Wait()
		checkEqual(t, "calls of combine", combined, 1)
	})
}

func TestFailingCombinerIsAnErrorNotAHang(t *testing.T) {
	isPanic := func(err error) bool { return errors.As(err, new(*core.PanicError)) }
	for name, test := range map[string]struct {
		combine func() (int, error)
		check   func(error) bool
		answers int64 // of five callers
	}{
		"error":  {func() (int, error) { return 0, errOnPurpose }, func(err error) bool { return errors.Is(err, errOnPurpose) && !isPanic(err) }, 5},
		"panic":  {func() (int, error) { panic(errOnPurpose) }, func(err error) bool { return errors.Is(err, errOnPurpose) && isPanic(err) }, 5},
		"goexit": {func() (int, error) { runtime.Goexit(); return 0, nil }, isPanic, 4}, // the goroutine that combined has ended
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := combiner(t, func(core.Signal, []int) (int, error) { time.Sleep(time.Second); return test.combine() }, core.Options{})
				defer c.Close()
				enqueue(t, c, raises("verdict.guilty", 1))
				var answers atomic.Int64
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						outcome, err := c.Results(context.Background())
						answers.Add(1)
						checkOutcome(t, outcome, "verdict.guilty", 1)
						checkEqual(t, fmt.Sprint(err), test.check(err), true)
					})
				}
				all.Wait()
				checkEqual(t, "answers", answers.Load(), test.answers)
			})
		})
	}
}

func TestResultsStopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		c := combiner(t, func(core.Signal, []int) (int, error) { <-let; return 5, nil }, core.Options{})
		defer c.Close()
		patience := errors.New("out of patience")
		wait := func(what string) {
			t.Helper()
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, patience)
			defer cancel()
			outcome, err := c.Results(ctx)
			checkError(t, what, err, patience)
			checkOutcome(t, outcome, "")
		}
		work := make(chan struct{})
		enqueue(t, c, func(context.Context) (int, error) { <-work; return 1, nil })
		wait("for the work")
		close(work)
		var all sync.WaitGroup
		all.Go(func() { checkEqual(t, "combined", results(t, c).Combined, 5) })
		synctest.Wait()
		wait("for combine")
		close(let)
		all.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			outcome, err := c.Results(ended) // the outcome is there, so the context does not count
			checkError(t, "Results", err, nil)
			checkOutcome(t, outcome, "", 1)
		}
	})
}

func TestResultsOutliveTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector(t, core.Options{MaxTracked: -1, MaxAge: time.Second})
		defer c.Close()
		var want []int
		for i := range 500 {
			enqueue(t, c, gives(i))
			want = append(want, i)
		}
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		time.Sleep(time.Hour)
		for op := range c.Operations(core.OperationQuery{}) {
			t.Errorf("got %v, want an empty window", op)
		}
		checkOutcome(t, results(t, c), "", want...)
	})
}

func TestBodiesDoNotWaitForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collector(t, core.Options{})
		enqueue(t, c, func(ctx context.Context) (int, error) {
			_, err := c.Results(ctx)
			checkError(t, "Results", err, core.ErrWouldDeadlock)
			_, err = c.Results(context.Background())
			checkError(t, "Results", err, core.ErrWouldDeadlock)
			enqueue(t, c, gives(2))
			return 1, nil
		})
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		checkOutcome(t, results(t, c), "", 1, 2)
	})
}

// The pattern matches the exit signals of each other, and their own.
func TestCollectorsThatExitOnEverythingEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		var all []*earlyexit.Collector[job, int]
		for range 3 {
			c, err := earlyexit.New(run, "*", nil, core.Options{Sink: sink})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all = append(all, c)
		}
		sink.Raise("anything")
		for _, c := range all {
			if outcome := results(t, c); !outcome.Exited {
				t.Errorf("got %+v, want it to have exited", outcome)
			}
		}
	})
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	for want, try := range map[string]struct {
		work   core.ResultWork[job, int]
		exitOn string
		opts   core.Options
	}{
		"earlyexit: there must be work":        {nil, "verdict.*", core.Options{}},
		`earlyexit: exitOn is ""`:              {run, "", core.Options{}},
		`earlyexit: exitOn is " ,\t,"`:         {run, " ,\t,", core.Options{}},
		"earlyexit: Options.Lanes and Classes": {run, "verdict.*", core.Options{Classes: []core.Class{{Name: "a"}}}},
		"earlyexit: Options.Lanes":             {run, "verdict.*", core.Options{Lanes: []core.Lane{{Name: "hot"}}}},
		"earlyexit: core: Options.StopOnError": {run, "verdict.*", core.Options{StopOnError: true}},
	} {
		if c, err := earlyexit.New(try.work, try.exitOn, nil, try.opts); err == nil || c != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v and error %v, want an error with %q", c, err, want)
		}
	}
	checkEqual(t, "name", collector(t, core.Options{}).Name(), "earlyexit")
}

// Whenever the signal comes, what succeeded is in the results and nothing else, and
// every item is accounted for.
func TestExitAtAnyTime(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 27))
			var combined, finished, accepted atomic.Int64
			c := combiner(t, func(core.Signal, []int) (int, error) { combined.Add(1); return 0, nil },
				core.Options{MaxConcurrency: 1 + random.IntN(4), MaxQueued: 1 + random.IntN(8)})
			defer c.Close()
			var all sync.WaitGroup
			for range 3 {
				pauses := random.IntN(3)
				all.Go(func() {
					for i := range 20 {
						_, err := c.Enqueue(context.Background(), func(ctx context.Context) (int, error) {
							select {
							case <-time.After(time.Duration(i%4) * time.Millisecond):
							case <-ctx.Done():
								if i%2 == 0 { // follows it
									return 0, ctx.Err()
								}
							}
							finished.Add(1)
							return i, nil
						})
						if err != nil {
							checkExited(t, err, "verdict.guilty")
							return
						}
						accepted.Add(1)
						time.Sleep(time.Duration(pauses) * time.Millisecond)
					}
				})
			}
			for range 2 {
				after := time.Duration(random.IntN(40)) * time.Millisecond
				all.Go(func() {
					time.Sleep(after)
					c.Sink().Raise("verdict.guilty")
				})
			}
			all.Wait()
			outcome := results(t, c)
			s := c.Stats()
			if err := coretest.CheckBooks(s); err != nil {
				t.Error(err)
			}
			checkEqual(t, "exited", outcome.Exited, true)
			checkEqual(t, "exits", c.Sink().Count(earlyexit.SignalExited), 1)
			checkEqual(t, "results", int64(len(outcome.Results)), finished.Load())
			checkEqual(t, "succeeded", int64(s.Succeeded), finished.Load())
			checkEqual(t, "enqueued", int64(s.Enqueued), accepted.Load())
			checkEqual(t, "calls of combine", combined.Load(), 1)
		})
	}
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := collector(t, core.Options{})
		return coretest.Subject{
			Lifecycle: c,
			Submit: func(ctx context.Context, body coretest.Body) error {
				_, err := c.Enqueue(ctx, func(ctx context.Context) (int, error) { return 0, body(ctx) })
				return err
			},
			Pause: c.Pause, Resume: c.Resume, WaitIdle: c.WaitIdle,
			Sink:  c.Sink(),
			Stats: c.Stats,
		}
	})
}
