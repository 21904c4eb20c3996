package stages_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/stages"
)

var errOnPurpose = errors.New("failed on purpose")

// pass adds a digit to an item.
func pass(digit int) core.ResultWork[int, int] {
	return func(_ context.Context, i int) (int, error) { return 10*i + digit, nil }
}

// takes passes an item after a while.
func takes(d time.Duration) core.ResultWork[int, int] {
	return func(ctx context.Context, i int) (int, error) {
		select {
		case <-time.After(d):
			return i, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func pipeline(t testing.TB, opts core.Options, list ...stages.Stage[int]) *stages.Pipeline[int] {
	t.Helper()
	p, err := stages.New(list, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkError(t testing.TB, got, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(got, want), "got error %v, want %v", got, want)
}

func checkEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

// checkResults compares results as text: the item, and the stage where it ended.
func checkResults(t testing.TB, results []stages.Result[int], want ...string) {
	t.Helper()
	var got []string
	for _, r := range results {
		got = append(got, strings.TrimSpace(fmt.Sprint(r.Item, " ", r.Stage)))
		coretest.Check(t, (r.Stage == "") == (r.Err == nil), "got stage %q and error %v, want both or neither", r.Stage, r.Err)
	}
	coretest.Check(t, slices.Equal(got, want), "results\n got: %q\nwant: %q", got, want)
}

func TestStagesFollowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var second atomic.Bool
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "stage.*")
		p := pipeline(t, core.Options{Sink: sink, MaxConcurrency: 2},
			stages.Stage[int]{Name: "first", Work: func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Second)
				checkEqual(t, "second has begun", second.Load(), false)
				return 10*i + 1, nil
			}},
			stages.Stage[int]{Work: func(_ context.Context, i int) (int, error) {
				second.Store(true)
				return 10*i + 2, nil
			}},
		)
		given := []int{1, 2, 3}
		begun := time.Now()
		results, err := p.Run(t.Context(), given)
		checkError(t, err, nil)
		checkEqual(t, "took", time.Since(begun), 2*time.Second)
		checkResults(t, results, "112", "212", "312")
		checkEqual(t, "an item that was given", given[0], 1)
		var keys []string
		for _, s := range facts.ExpectExactly(stages.SignalStart, stages.SignalComplete, stages.SignalStart, stages.SignalComplete) {
			keys = append(keys, s.Key)
		}
		checkEqual(t, "keys", strings.Join(keys, " "), "first first stage-2 stage-2")
	})
}

// Fault avoided: cancellation while waiting can fall through and run the stage.
func TestCancellationWhileWaitingDoesNotRunTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "stage.*")
		p := pipeline(t, core.Options{Sink: sink},
			stages.Stage[int]{Name: "first", Work: pass(1)},
			stages.Stage[int]{Name: "waits", When: "go", Work: func(context.Context, int) (int, error) {
				t.Error("the stage ran")
				return 0, nil
			}})
		patience := errors.New("out of patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, patience)
		defer cancel()
		results, err := p.Run(ctx, []int{1, 2})
		checkError(t, err, patience)
		checkResults(t, results, "11 waits", "21 waits")
		checkEqual(t, "error of an item", results[0].Err, patience)
		facts.ExpectExactly(stages.SignalStart, stages.SignalComplete)

		sink.Raise("go") // the signal is there, but the context has ended
		results, err = p.Run(ctx, []int{1})
		checkError(t, err, patience)
		checkResults(t, results, "1 first")
		facts.None()
	})
}

// Fault avoided: failures of items are swallowed, and failed items go on.
func TestFailedItemsGoNoFurtherAndSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline(t, core.Options{MaxConcurrency: 1},
			stages.Stage[int]{Name: "odd", Work: func(_ context.Context, i int) (int, error) {
				if i%2 == 0 {
					return 100, fmt.Errorf("%d is even: %w", i, errOnPurpose)
				}
				return 10*i + 1, nil
			}},
			stages.Stage[int]{Name: "small", Work: func(_ context.Context, i int) (int, error) {
				if i > 30 {
					panic(i)
				}
				return 10*i + 2, nil
			}},
		)
		results, err := p.Run(t.Context(), []int{1, 2, 3, 4})
		checkResults(t, results, "112", "2 odd", "31 small", "4 odd")
		checkError(t, results[1].Err, errOnPurpose)
		if p, ok := errors.AsType[*core.PanicError](results[2].Err); !ok || p.Value != 31 || len(p.Stack) == 0 {
			t.Errorf("got error %v, want the panic", results[2].Err)
		}
		want := "stages: stage \"odd\": 2 is even: failed on purpose\n" +
			"stages: stage \"odd\": 4 is even: failed on purpose\n" +
			"stages: stage \"small\": core: operation panicked: 31"
		checkEqual(t, "error", err.Error(), want)
	})
}

// Fault avoided: a stage reports that it is complete although all failed.
func TestStageThatLetsNothingPassFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "stage.*")
		fail := func(context.Context, int) (int, error) { return 0, errOnPurpose }
		p := pipeline(t, core.Options{Sink: sink},
			stages.Stage[int]{Name: "a", Work: fail},
			stages.Stage[int]{Name: "b", Work: pass(2), When: "never"}) // the run ends before this stage
		results, err := p.Run(t.Context(), []int{1, 2})
		checkError(t, err, errOnPurpose)
		checkResults(t, results, "1 a", "2 a")
		raised := facts.ExpectExactly(stages.SignalStart, stages.SignalFailed)
		checkEqual(t, "key", raised[1].Key, "a")

		results, err = p.Run(t.Context(), nil)
		checkError(t, err, nil)
		checkEqual(t, "results", len(results), 0)
		facts.None()
	})
}

// Fault avoided: the concurrency inside a stage cannot be configured.
func TestStagesHaveTheirOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := []stages.Stage[int]{
			{Work: takes(time.Second), MaxConcurrency: 1},
			{Work: takes(time.Minute)},
			{Work: takes(time.Hour), MaxConcurrency: math.MaxInt},
		}
		p := pipeline(t, core.Options{MaxConcurrency: 3, MaxQueued: 1}, list...)
		list[0].Work = nil // New has made a copy
		begun := time.Now()
		_, err := p.Run(t.Context(), make([]int, 6))
		checkError(t, err, nil)
		checkEqual(t, "took", time.Since(begun), 6*time.Second+2*time.Minute+time.Hour)
	})
}

func TestCancelledInAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "stage.*")
		p := pipeline(t, core.Options{Sink: sink, MaxConcurrency: 4},
			stages.Stage[int]{Name: "a", Work: func(ctx context.Context, i int) (int, error) {
				switch i {
				case 1:
					return i, nil
				case 2: // ignores its context
					time.Sleep(time.Minute)
					return i, nil
				case 3:
					<-ctx.Done()
					return 0, errOnPurpose // something else
				}
				return takes(time.Hour)(ctx, i)
			}},
			stages.Stage[int]{Name: "b", Work: pass(2)},
		)
		patience := errors.New("out of patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, patience)
		defer cancel()
		begun := time.Now()
		results, err := p.Run(ctx, []int{1, 2, 3, 4, 5, 6})
		checkEqual(t, "took", time.Since(begun), time.Minute)
		checkEqual(t, "error", err.Error(), "out of patience\nstages: stage \"a\": failed on purpose")
		checkResults(t, results, "1 b", "2 b", "3 a", "4 a", "5 a", "6 a")
		for i, want := range []error{patience, patience, errOnPurpose, patience, patience, patience} {
			checkError(t, results[i].Err, want)
		}
		facts.ExpectExactly(stages.SignalStart, stages.SignalFailed)
	})
}

// A context that ends after all work is done does not turn success into failure.
func TestContextEndsWithTheLastItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := pipeline(t, core.Options{}, stages.Stage[int]{Work: func(context.Context, int) (int, error) {
			cancel()
			return 7, nil
		}})
		results, err := p.Run(ctx, []int{1})
		checkError(t, err, nil)
		checkResults(t, results, "7")
	})
}

func TestStopOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		p := pipeline(t, core.Options{StopOnError: true, MaxConcurrency: 3},
			stages.Stage[int]{Name: "a", Work: func(ctx context.Context, i int) (int, error) {
				begun.Add(1)
				if i == 1 {
					time.Sleep(time.Second)
					return 0, errOnPurpose
				}
				_, err := takes(time.Duration(i)*time.Hour)(ctx, i)
				if err != nil {
					checkError(t, context.Cause(ctx), errOnPurpose)
				}
				return i, err
			}},
			stages.Stage[int]{Name: "b", Work: pass(2)},
		)
		started := time.Now()
		results, err := p.Run(t.Context(), []int{0, 2, 1, 0, 3, 3})
		checkEqual(t, "took", time.Since(started), time.Second) // the items end in another order
		checkEqual(t, "error", err.Error(), `stages: stage "a": failed on purpose`)
		checkResults(t, results, "0 b", "2 a", "1 a", "0 b", "3 a", "3 a")
		checkEqual(t, "begun", begun.Load(), 5)
	})
}

func TestErrorsAreCounted(t *testing.T) {
	p := pipeline(t, core.Options{}, stages.Stage[int]{Work: func(context.Context, int) (int, error) { return 0, errOnPurpose }})
	_, err := p.Run(t.Context(), make([]int, 1000))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 101 || lines[100] != "stages: and 900 more errors" {
		t.Errorf("got %d lines that end with %q, want 100 errors and a count", len(lines), lines[len(lines)-1])
	}
}

// If a gate holds back items when the context ends, these are cancelled, not failed.
func TestCancelledWhileDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline(t, core.Options{DeferOn: "maintenance"}, stages.Stage[int]{Name: "a", Work: pass(1)})
		p.Sink().Hold("maintenance", "", 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results, err := p.Run(ctx, []int{2, 3})
		checkEqual(t, "error", err.Error(), context.DeadlineExceeded.Error())
		checkResults(t, results, "2 a", "3 a")
	})
}

// Without Options.Sink a pipeline has its own, where stages wait and raise. Fault avoided:
// a stage never sees a signal that was raised before it waits.
func TestSinkOfItsOwn(t *testing.T) {
	p := pipeline(t, core.Options{}, stages.Stage[int]{When: "go", Work: pass(1)})
	p.Sink().Raise("go")
	_, err := p.Run(t.Context(), []int{1})
	checkError(t, err, nil)
	checkEqual(t, "completed", p.Sink().Count(stages.SignalComplete), 1)
}

func TestOptions(t *testing.T) {
	work := pass(1)
	for want, c := range map[string]struct {
		list []stages.Stage[int]
		opts core.Options
	}{
		"at least one stage":                    {},
		`stage "stage-1": Work is nil`:          {list: []stages.Stage[int]{{}}},
		`stage "a": MaxConcurrency is -1`:       {list: []stages.Stage[int]{{Name: "a", Work: work, MaxConcurrency: -1}}},
		`two stages "stage-2"`:                  {list: []stages.Stage[int]{{Name: "stage-2", Work: work}, {Work: work}}},
		"Options.MaxConcurrency is -1":          {list: []stages.Stage[int]{{Work: work}}, opts: core.Options{MaxConcurrency: -1}},
		`Options.ResumeOn is "x", but there is`: {list: []stages.Stage[int]{{Work: work}}, opts: core.Options{ResumeOn: "x"}},
	} {
		p, err := stages.New(c.list, c.opts)
		coretest.Check(t, p == nil, "got %v, want none", p)
		coretest.Check(t, strings.HasPrefix(fmt.Sprint(err), "stages: "), "got error %v, want one of the package", err)
		coretest.Check(t, strings.Contains(fmt.Sprint(err), want), "got error %v, want %q", err, want)
	}
}
