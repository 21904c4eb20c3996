package core_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// At its end, an operation is counted for all operations, for its lane and for its class. What
// has not started, and what was before the first call, is not counted.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }, core.Options{
			MaxConcurrency: 1, Lanes: []core.Lane{{Name: "hot"}, {Name: "cold"}}, Classes: []core.Class{{Name: "a"}, {Name: "b"}},
		}))
		defer c.Close()
		hot, cold := c.Lane("hot"), c.Lane("cold").Class("b")
		if err := hot.Do(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		counts := func() (all []string) {
			for _, x := range c.Times(time.Minute) {
				all = append(all, fmt.Sprintf("%s%s %d %d", x.Lane, x.Class, x.Waiting.Count(), x.Running.Count()))
			}
			return all
		}
		if got, want := counts(), []string{" 0 0", "hot 0 0", "cold 0 0", "a 0 0", "b 0 0"}; !slices.Equal(got, want) {
			t.Fatalf("the first call returns %q, want %q", got, want)
		}
		for range 3 {
			core.Must(hot.Enqueue(t.Context(), 8*time.Second))
		}
		core.Must(cold.Enqueue(t.Context(), time.Second))
		refused := core.Must(cold.Enqueue(t.Context(), time.Second))
		c.Cancel(refused, nil)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if got, want := counts(), []string{" 4 4", "hot 3 3", "cold 1 1", "a 0 0", "b 1 1"}; !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i, want := range []struct {
			what string
			d    time.Duration
		}{{"waited", 24 * time.Second}, {"ran", 8 * time.Second}} {
			all := c.Times(0)
			got := []time.Duration{all[2].Waiting.Quantile(1), all[1].Running.Quantile(0.5)}[i]
			if got < want.d || got > want.d+want.d/8 {
				t.Errorf("%s %v, want %v and at most an eighth more", want.what, got, want.d)
			}
		}
	})
}

// Counting costs no allocation.
func TestTimesAllocateNothing(t *testing.T) {
	skipRace(t)
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 1}))
	defer c.Close()
	ctx := context.Background()
	do := func() { c.Do(ctx, 1) }
	do()
	before := testing.AllocsPerRun(2000, do)
	c.Times(0)
	wantAllocs(t, "an operation whose time is counted", before, do)
}

// What an operation costs more if times are counted, on one core: coordinators with and without
// take turns, and the fastest round of each counts.
func BenchmarkTimes(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx := context.Background()
	const n = 500
	var all [20]*core.Coordinator[int]
	var best [len(all)]time.Duration
	for i := range all {
		all[i] = core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{MaxConcurrency: 8, MaxTracked: 200}))
		defer all[i].Close()
		if best[i] = time.Hour; i%2 == 1 {
			all[i].Times(0)
		}
	}
	for b.Loop() {
		for i, c := range all {
			start := time.Now()
			for range n {
				c.Enqueue(ctx, 1)
			}
			c.Flush(ctx)
			best[i] = min(best[i], time.Since(start))
		}
	}
	var sum [2]time.Duration
	for i, d := range best {
		sum[i%2] += d
	}
	b.ReportMetric(float64(sum[0])/n/10, "ns-plain/op")
	b.ReportMetric(float64(sum[1]-sum[0])/n/10, "ns-more/op")
}
