package dynamicworkflow_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow"
)

// entity returns the text before the "/" of an item.
func entity(item string) string { name, _, _ := strings.Cut(item, "/"); return name }

func nothing(context.Context, string) error { return nil }

func newWorkflow(t *testing.T, sink *signals.Sink, work core.Work[string], opts dynamicworkflow.Options) *dynamicworkflow.Workflow[string] {
	w, err := dynamicworkflow.New(entity, work, opts, core.Options{Name: "orders", Sink: sink})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

// The test has 100 widgets, 30 s and 100 items a second. The primary fails 30 % of them.
// Each item is done exactly once. Widget-123 never waits for widget-456, which hangs. The
// primary gets no items while it is unhealthy, and is used again after a successful probe.
func TestHundredWidgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		said := coretest.Watch(t, sink, "processor.marked.*")
		var mu sync.Mutex
		random, start, hung := rand.New(rand.NewPCG(1, 2)), time.Now(), make(chan struct{})
		done, took, primaryFailed, byPrimary := map[string]int{}, map[string]time.Duration{}, 0, 0
		finish := func(item string) {
			done[item]++
			var n int
			fmt.Sscanf(item[strings.Index(item, "/"):], "/%d", &n)
			took[item] = time.Since(start) - time.Duration(n)*10*time.Millisecond
		}
		primary := func(_ context.Context, item string) error {
			if entity(item) == "widget-456" {
				<-hung
			}
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if random.IntN(10) < 3 {
				primaryFailed++
				return errDown
			}
			byPrimary++
			finish(item)
			return nil
		}
		backup := func(_ context.Context, item string) error {
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			finish(item)
			return nil
		}
		failover := newFailover(sink, primary, backup)
		coretest.NothingLeft(t, sink, func() {
			w, err := dynamicworkflow.New(entity, failover.Do, dynamicworkflow.Options{
				Min: 16, Max: 64, Probe: func(context.Context, int) error { return nil },
			}, core.Options{Sink: sink, MaxTracked: 10})
			require.NoError(t, err)
			w.Metrics(time.Minute)
			for n := range 3000 {
				core.Must(w.Enqueue(t.Context(), fmt.Sprintf("widget-%d/%d", []int{123, 456, n % 100}[min(n%100, 2)], n)))
				time.Sleep(10 * time.Millisecond)
			}
			close(hung)
			require.NoError(t, w.Flush(t.Context()))
			m := w.Metrics(time.Minute)
			assert.Equal(t, dynamicworkflow.Metrics{Total: 3000, Succeeded: 3000, Failovers: primaryFailed, Concurrency: m.Concurrency}, m)
			require.NoError(t, w.Drain(t.Context()))
		})
		require.Len(t, done, 3000)
		for item, times := range done {
			require.Equal(t, 1, times, item)
			if entity(item) == "widget-123" {
				require.LessOrEqual(t, took[item], 150*time.Millisecond, item)
			}
		}
		assert.Greater(t, byPrimary, 50)
		assert.Less(t, byPrimary+primaryFailed, 2000, "while the primary was unhealthy, items went to the backup at once")
		said.Expect("processor.marked.unhealthy:pri1", "processor.marked.healthy:pri1", "processor.marked.unhealthy:pri1")
	})
}

// routed runs items and returns how many were routed to each priority.
func routed(t *testing.T, w *dynamicworkflow.Workflow[string], items int, name func(int) string) map[string]int {
	routes := map[string]int{}
	defer w.Sink().Subscribe("route.priority.*", func(s signals.Signal) { routes[strings.TrimPrefix(s.Name, "route.priority.")]++ })()
	for i := range items {
		require.NoError(t, w.Do(t.Context(), name(i)))
	}
	return routes
}

func TestRoutes(t *testing.T) {
	type counts = map[string]int
	one := func(int) string { return "one" }
	many := func(i int) string { return fmt.Sprint("widget-", i) }
	region := func(_ context.Context, entity string) string { return entity[:2] }
	lists := map[string][]int{"eu": {2, 3}, "": {1, 3}}
	for name, c := range map[string]struct {
		route     dynamicworkflow.Route
		of        func(int) string
		unhealthy []int
		want      counts
	}{
		"nil":                  {nil, one, nil, counts{"1": 100}},
		"nil, without primary": {nil, one, []int{1}, counts{"2": 100}},
		"nil, all unhealthy":   {nil, one, []int{1, 2}, counts{}},
		"best of three":        {dynamicworkflow.Best(3), many, []int{1, 2}, counts{"3": 100}},
		"weighted":             {dynamicworkflow.Weighted(90, 10), one, nil, counts{"1": 90, "2": 10}},
		"weighted, by halves":  {dynamicworkflow.Weighted(1, 0, 1), one, nil, counts{"1": 50, "3": 50}},
		"weighted, without 1":  {dynamicworkflow.Weighted(60, 30, 10), one, []int{1}, counts{"2": 90, "3": 10}},
		"weighted, without 2":  {dynamicworkflow.Weighted(60, 40), one, []int{2}, counts{"1": 100}},
		"no weights":           {dynamicworkflow.Weighted(), one, nil, counts{}},
		"sticky":               {dynamicworkflow.Sticky(50, 50), one, nil, counts{"2": 100}},
		"sticky, many":         {dynamicworkflow.Sticky(50, 50), many, nil, counts{"1": 49, "2": 51}},
		"sticky, without 2":    {dynamicworkflow.Sticky(50, 50), one, []int{2}, counts{"1": 100}},
		"region":               {dynamicworkflow.Regional(region, lists), func(int) string { return "eu-7" }, nil, counts{"2": 100}},
		"region, without 2":    {dynamicworkflow.Regional(region, lists), func(int) string { return "eu-7" }, []int{2}, counts{"3": 100}},
		"another region":       {dynamicworkflow.Regional(region, lists), func(int) string { return "us-7" }, nil, counts{"1": 100}},
		"no entity":            {nil, func(int) string { return "" }, nil, counts{}},
		"a route of your own":  {func(context.Context, string, func(int) bool) int { return 7 }, one, nil, counts{"7": 100}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := signals.NewSink(signals.SinkOptions{})
			for _, p := range c.unhealthy { // raised before the workflow exists: the order does not matter
				sink.Raise(fmt.Sprint("processor.unhealthy:pri", p))
			}
			w := newWorkflow(t, sink, nothing, dynamicworkflow.Options{Route: c.route})
			assert.Equal(t, c.want, routed(t, w, 100, c.of))
		})
	}
}

// The route is held only while the item runs: no table grows with the number of entities.
func TestARouteIsHeldForItsItem(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 1})
	w := newWorkflow(t, sink, func(ctx context.Context, item string) error {
		for i := range 10 { // these would push out a raised signal
			sink.RaiseKey("chatter", fmt.Sprint(i))
		}
		held := 0
		for s := range sink.Sense(signals.Query{Pattern: "route.priority.*"}) {
			assert.Equal(t, entity(item), s.Key)
			assert.True(t, s.Held)
			held++
		}
		assert.Equal(t, 1, held)
		return nil
	}, dynamicworkflow.Options{})
	assert.Equal(t, map[string]int{"1": 3}, routed(t, w, 3, func(i int) string { return fmt.Sprint("widget-", i) }))
	assert.False(t, sink.Has("route.*"))
}

// Probes come after 5, 10, 20, 40, 60 and 60 s, one at a time, however they fail, and the
// first that succeeds restores the priority once. A failure after that begins at 5 s again.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		newFailover(sink)
		said := coretest.Watch(t, sink, "processor.*, probe.*")
		begun, times := time.Now(), []int{}
		w := newWorkflow(t, sink, nothing, dynamicworkflow.Options{Probe: func(ctx context.Context, priority int) error {
			assert.Equal(t, 1, priority)
			times = append(times, int(time.Since(begun).Seconds()))
			begun = time.Now()
			switch len(times) {
			case 1:
				panic("down")
			case 2:
				<-ctx.Done() // it hangs
				return ctx.Err()
			case 7:
				return nil
			}
			return errDown
		}})
		for _, name := range []string{"processor.unhealthy:pri1", "processor.unhealthy:pri1", "processor.unhealthy:pri0", "processor.unhealthy:pri32", "processor.unhealthy:pri", "processor.unhealthy:pri+2", "processor.unhealthy:pri02", "processor.unhealthyish:pri2"} {
			sink.Raise(name)
		}
		time.Sleep(290 * time.Second)
		synctest.Wait()
		assert.Equal(t, []int{5, 10, 25, 40, 60, 60, 60}, times, "the third waits for the second, which takes 5 s")
		restored := said.Expect("probe.failed:pri1", "probe.starting:pri1", "probe.success:pri1", "processor.mark.healthy:pri1", "processor.marked.healthy:pri1")
		first, ok := dynamicworkflow.Decisions.From(restored[0])
		assert.True(t, ok)
		assert.Equal(t, 10*time.Second, first.Next)
		assert.Equal(t, 1, sink.Count("processor.marked.healthy:*"))
		assert.Equal(t, 1, sink.Count("processor.marked.unhealthy:*"))

		// The rest of an old wait does not delay the next one.
		sink.Raise("processor.unhealthy:pri1")
		time.Sleep(7 * time.Second)
		synctest.Wait()
		sink.Raise("processor.healthy:pri1")
		begun = time.Now()
		sink.Raise("processor.unhealthy:pri1")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		assert.Equal(t, 5, times[8])
		require.NoError(t, w.Close())
		time.Sleep(time.Hour)
		assert.Len(t, times, 9, "no probe after the end")
	})
}

// A probe that does not end with its context delays the next one of its priority.
func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []time.Duration
		start := time.Now()
		w := newWorkflow(t, nil, nothing, dynamicworkflow.Options{Probe: func(context.Context, int) error {
			began = append(began, time.Since(start))
			time.Sleep(time.Minute)
			return nil
		}})
		for _, name := range []string{"unhealthy", "healthy", "unhealthy"} {
			w.Sink().Raise("processor." + name + ":pri1")
			time.Sleep(10 * time.Second)
		}
		time.Sleep(40 * time.Second) // the second probe runs
		require.NoError(t, w.Close())
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []time.Duration{5 * time.Second, 65 * time.Second}, began)
	})
}

// Without a Probe, items are the probes: no signal says that the priority is healthy, but
// it is used again.
func TestWithoutProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkflow(t, nil, nothing, dynamicworkflow.Options{})
		w.Sink().Raise("processor.unhealthy:pri1")
		for _, want := range []string{"2", "1"} {
			assert.Equal(t, map[string]int{want: 1}, routed(t, w, 1, func(int) string { return "one" }))
			time.Sleep(6 * time.Second)
		}
		assert.False(t, w.Sink().Has("processor.mark.*, probe.*"))
	})
}

// The rule decides 10 s after the first result, in steps of 2 between Min and Max. A signal
// reports each change. An idle workflow does nothing.
func TestAdaptiveConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		said := coretest.Watch(t, sink, "concurrency.*, workflow.*")
		w := newWorkflow(t, sink, func(ctx context.Context, item string) error {
			if strings.HasSuffix(item, "/slow") {
				core.OperationFrom(ctx).Raise("failover.requested:pri1->pri2")
			}
			if strings.HasSuffix(item, "/bad") {
				return errDown
			}
			return nil
		}, dynamicworkflow.Options{Min: 3, Max: 7})
		assert.Equal(t, 4, w.Stats().Limit)
		for _, c := range []struct {
			good, slow, bad int
			limit           int
			reason          string
		}{
			{3, 0, 0, 4, ""}, {4, 0, 0, 6, "good throughput: 4"}, {96, 1, 1, 6, ""}, {100, 1, 0, 7, "good throughput: 101"}, {100, 0, 0, 7, ""},
			{90, 5, 4, 7, ""}, {7, 0, 1, 5, "high failure rate: 12.5%"}, {0, 1, 0, 3, "high failure rate: 50.0%"}, {0, 0, 9, 3, ""},
		} {
			for range c.good {
				w.Do(t.Context(), "a/good")
			}
			for range c.slow {
				w.Do(t.Context(), "a/slow")
			}
			for range c.bad {
				w.Do(t.Context(), "a/bad")
			}
			time.Sleep(9 * time.Second)
			synctest.Wait()
			said.None()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			assert.Equal(t, c.limit, w.Stats().Limit)
			want := []string{"workflow.measured"}
			if c.reason != "" {
				want = append(want, fmt.Sprintf("concurrency.%s:to=%d", map[bool]string{true: "increased", false: "decreased"}[c.reason[0] == 'g'], c.limit))
			}
			last := said.ExpectExactly(want...)
			d, _ := dynamicworkflow.Decisions.From(last[len(last)-1])
			assert.Equal(t, c.reason, d.Reason)
		}
		time.Sleep(time.Hour)
		said.None()
		for _, name := range []string{"system.load.high", "system.load.low", "system.load.lower", "system.load.low", "system.load.low"} {
			sink.Raise(name)
		}
		said.ExpectExactly("concurrency.increased:to=5", "concurrency.increased:to=7")
		w.SetMaxConcurrency(9)
		sink.Raise("system.load.low") // no step up leads from 9 to 7
		said.None()
	})
}

// Time passes between a result and the start of its interval, as with a real clock. Each result
// counts in exactly one interval, even the first results of an interval. Step may be as large
// as an int.
func TestEachResultIsMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		said := coretest.Watch(t, sink, "concurrency.*, workflow.*")
		w := newWorkflow(t, sink, func(_ context.Context, item string) error {
			if item == "bad" {
				return errDown
			}
			return nil
		}, dynamicworkflow.Options{Step: math.MaxInt})
		var failed atomic.Int64 // items fail at once
		dynamicworkflow.Failed.Subscribe(sink, func(_ signals.Signal, err error) {
			failed.Add(1)
			assert.Equal(t, errDown, err)
		})
		sink.Subscribe("order.failed, order.completed", func(signals.Signal) { time.Sleep(time.Nanosecond) })
		for _, c := range []struct {
			item string
			want dynamicworkflow.Metrics
			then string
		}{
			{"bad", dynamicworkflow.Metrics{Total: 100, Failed: 100, Concurrency: 4}, "concurrency.decreased:to=1"},
			{"good", dynamicworkflow.Metrics{Total: 100, Succeeded: 100, Concurrency: 1}, "concurrency.increased:to=32"},
		} {
			for range 100 {
				core.Must(w.Enqueue(t.Context(), c.item))
			}
			time.Sleep(11 * time.Second)
			m, _ := dynamicworkflow.Measured.From(said.ExpectExactly("workflow.measured", c.then)[0])
			assert.Equal(t, c.want, m)
		}
		assert.EqualValues(t, 100, failed.Load())
	})
}

// A panic and the end of Options.Timeout count as failures, a cancelled item does not.
// After the end nothing is counted.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := dynamicworkflow.New(entity, func(ctx context.Context, item string) error {
			switch item {
			case "panic":
				panic(item)
			case "hang":
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, dynamicworkflow.Options{Interval: -1}, core.Options{Timeout: time.Second})
		require.NoError(t, err)
		for _, item := range []string{"good", "panic", "hang"} {
			w.Do(t.Context(), item)
		}
		id := core.Must(w.Enqueue(t.Context(), "hang"))
		synctest.Wait()
		w.Cancel(id, nil)
		require.Error(t, w.Wait(t.Context(), id))
		want := dynamicworkflow.Metrics{Total: 4, Succeeded: 1, Failed: 2, Concurrency: 4}
		assert.Equal(t, want, w.Metrics(time.Minute))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, dynamicworkflow.Metrics{Concurrency: 4}, w.Metrics(time.Minute))
		assert.Equal(t, want, w.Metrics(0))
		require.NoError(t, w.Drain(t.Context()))
		assert.Equal(t, dynamicworkflow.Metrics{Concurrency: 4}, w.Metrics(0))
	})
}

// Close may be called from a Probe and from a handler of a decision.
func TestCloseFromInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, from := range []string{"probe", "probe.failed:pri1", "concurrency.increased:to=6"} {
			var w *dynamicworkflow.Workflow[string]
			w = newWorkflow(t, nil, nothing, dynamicworkflow.Options{Probe: func(context.Context, int) error {
				if from == "probe" {
					w.Close()
				}
				return errDown
			}})
			w.Sink().Subscribe(from, func(signals.Signal) { w.Close() })
			w.Sink().Raise("processor.unhealthy:pri1")
			time.Sleep(6 * time.Second)
			w.Sink().Raise("system.load.low")
			synctest.Wait()
			assert.True(t, w.Stats().Closed, from)
		}
	})
}

func TestOptions(t *testing.T) {
	for want, c := range map[string]struct {
		opts dynamicworkflow.Options
		core core.Options
	}{
		"Min is -1":               {opts: dynamicworkflow.Options{Min: -1}},
		"Max 4":                   {opts: dynamicworkflow.Options{Min: 5, Max: 4}},
		"Step -2":                 {opts: dynamicworkflow.Options{Step: -2}},
		"MaxConcurrency 40":       {core: core.Options{MaxConcurrency: 40}},
		"MaxPerKey is 2":          {core: core.Options{MaxPerKey: 2}},
		"dynamicworkflow: core: ": {core: core.Options{StopOnError: true}},
	} {
		_, err := dynamicworkflow.New(entity, nothing, c.opts, c.core)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "dynamicworkflow: ")
	}
	_, err := dynamicworkflow.New(entity, nil, dynamicworkflow.Options{}, core.Options{})
	assert.EqualError(t, err, "dynamicworkflow: work is nil, but must be a function")
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		w := core.Must(dynamicworkflow.New(func(coretest.Body) string { return "" }, coretest.Run, dynamicworkflow.Options{}, core.Options{}))
		return coretest.Subject{
			Lifecycle: w, Stats: w.Stats,
			Submit: func(ctx context.Context, body coretest.Body) error { _, err := w.Enqueue(ctx, body); return err },
		}
	})
}
