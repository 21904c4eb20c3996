package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func square(_ context.Context, i int) (int, error) { return i * i, nil }

// collect drains a Map into text, one entry per result.
func collect(seq func(func(int, error) bool)) []string {
	var got []string
	for out, err := range seq {
		if err != nil {
			got = append(got, fmt.Sprint(out, " error: ", err))
		} else {
			got = append(got, fmt.Sprint(out))
		}
	}
	return got
}

// A Map is a value: each loop over it starts from the beginning. Its results do not depend on the window.
func TestMapKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seq := core.Map(t.Context(), upTo(8), func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Duration(8-i) * time.Second) // the last is first
			return i * i, nil
		}, core.Options{MaxConcurrency: 8, MaxTracked: -1})
		for range 2 {
			checkSlice(t, "results", collect(seq), []string{"0", "1", "4", "9", "16", "25", "36", "49"})
		}
		checkSlice(t, "results of nothing", collect(core.Map(t.Context(), upTo(0), square, core.Options{})), nil)
	})
}

// A result that comes with an error is yielded with it.
func TestMapErrors(t *testing.T) {
	work := func(_ context.Context, i int) (int, error) {
		switch i {
		case 1:
			return 7, errOnPurpose
		case 2:
			panic("two")
		}
		return i, nil
	}
	bubble(t, func(t *testing.T) {
		got := collect(core.Map(t.Context(), upTo(4), work, core.Options{MaxConcurrency: 1}))
		checkSlice(t, "results", got, []string{"0", "7 error: failed on purpose", "0 error: core: operation panicked: two", "3"})
		got = collect(core.Map(t.Context(), upTo(1_000_000), work, core.Options{MaxConcurrency: 1, StopOnError: true}))
		checkSlice(t, "results with StopOnError", got, []string{"0", "7 error: failed on purpose"})
	})
}

// Map takes items from the source only if they can run or wait in the queue.
func TestMapWorksAheadABit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		taken := 0
		seq := func(yield func(int) bool) {
			for i := range 50 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		seen := 0
		for range core.Map(t.Context(), seq, square, core.Options{MaxConcurrency: 2, MaxQueued: 3}) {
			seen++
			synctest.Wait()
			if ahead := taken - seen; ahead > 5 {
				t.Errorf("%d items taken ahead of the loop, want at most 5", ahead)
			}
			time.Sleep(time.Second) // a slow consumer
		}
		checkEqual(t, "seen", seen, 50)
	})
}

func TestMapLeftEarly(t *testing.T) {
	for _, panics := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var running atomic.Int64
			work := func(ctx context.Context, i int) (int, error) {
				if i == 0 {
					return 0, nil
				}
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done()
				checkError(t, "cause", context.Cause(ctx), core.ErrCancelled)
				return 0, ctx.Err()
			}
			defer func() {
				checkEqual(t, "panicked", recover() == any(errOnPurpose), panics)
				checkEqual(t, "running after the loop", running.Load(), 0)
			}()
			for out := range core.Map(t.Context(), upTo(1_000_000), work, core.Options{MaxConcurrency: 2}) {
				checkEqual(t, "result", out, 0)
				if panics {
					panic(errOnPurpose)
				}
				break
			}
		})
	}
}

func TestMapCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		got := collect(core.Map(ctx, upTo(1_000_000), func(ctx context.Context, i int) (int, error) {
			if i < 2 {
				return i, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}, core.Options{MaxConcurrency: 2}))
		checkSlice(t, "results", got, []string{"0", "1", "0 error: failed on purpose"})
		got = collect(core.Map(ctx, upTo(3), square, core.Options{}))
		checkSlice(t, "results with a context that has ended", got, []string{"0 error: failed on purpose"})
	})
}

// A refused item has its place among the results.
func TestMapRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		sink.Raise("stop")
		got := collect(core.Map(t.Context(), upTo(2), square, core.Options{Sink: sink, CancelOn: "stop"}))
		want := `0 error: core: refused because of signal "stop"`
		checkSlice(t, "results", got, []string{want, want})
	})
}

// With StopOnError, the first error in time ends Map, also if the items before it run for long.
func TestMapStopsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun, started, causes := time.Now(), new(atomic.Int64), []error{}
		work := func(ctx context.Context, n int) (int, error) {
			started.Add(1)
			switch n {
			case 0:
				return n, nil
			case 2:
				time.Sleep(time.Second)
				return n, errOnPurpose
			}
			select {
			case <-ctx.Done():
				causes = append(causes, context.Cause(ctx))
				return n, fmt.Errorf("item %d: %w", n, ctx.Err())
			case <-time.After(time.Hour):
				return n, nil
			}
		}
		seq := func(yield func(int) bool) {
			for n := 0; yield(n); n++ {
			}
		}
		var got []string
		for n, err := range core.Map(t.Context(), seq, work, core.Options{MaxConcurrency: 2, StopOnError: true}) {
			got = append(got, fmt.Sprint(n, err))
		}
		checkSlice(t, "results", got, []string{"0 <nil>", "0 " + errOnPurpose.Error()})
		checkEqual(t, "time", time.Since(begun), time.Second)
		checkEqual(t, "started", started.Load(), 3)
		checkEqual(t, "causes", fmt.Sprint(causes), fmt.Sprint([]error{errOnPurpose}))
	})
}
