package dynamicworkflow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/ephemeralgo/ephemeral/patterns/dynamicworkflow"
)

// entity returns the text before the "/" of an item.
func entity(item string) string { name, _, _ := strings.Cut(item, "/"); return name }

var errDown = errors.New("down")

func nothing(context.Context, string) error { return nil }

func newWorkflow(t *testing.T, sink *signals.Sink, work core.Work[string], opts dynamicworkflow.Options) *dynamicworkflow.Workflow[string] {
	w, err := dynamicworkflow.New(entity, work, opts, core.Options{Name: "orders", Sink: sink})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
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

// Every 5 s, one item is routed to an unhealthy priority. When the work says that it is healthy,
// all are. The order of an unhealthy and a healthy signal counts, and other names do not.
func TestTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		w := newWorkflow(t, sink, nothing, dynamicworkflow.Options{})
		said := coretest.Watch(t, sink, "processor.marked.*")
		one := func(int) string { return "one" }
		for _, name := range []string{"unhealthy:pri1", "unhealthy:pri1", "unhealthy:pri0", "unhealthy:pri32", "unhealthy:pri", "unhealthy:pri+2", "unhealthy:pri02", "unhealthyish:pri2"} {
			sink.Raise("processor." + name)
		}
		time.Sleep(5*time.Second - 1)
		assert.Equal(t, map[string]int{"2": 3}, routed(t, w, 3, one))
		for range 2 {
			time.Sleep(time.Nanosecond)
			assert.Equal(t, map[string]int{"1": 1, "2": 2}, routed(t, w, 3, one))
			time.Sleep(5*time.Second - 1)
			assert.Equal(t, map[string]int{"2": 3}, routed(t, w, 3, one))
		}
		sink.Raise("processor.healthy:pri1")
		synctest.Wait() // the goroutine of the last item may be about to decide, and then does this too
		assert.Equal(t, map[string]int{"1": 3}, routed(t, w, 3, one))
		sink.Raise("processor.unhealthy:pri1")
		time.Sleep(5*time.Second - 1)
		assert.Equal(t, map[string]int{"2": 3}, routed(t, w, 3, one))
		said.ExpectExactly("processor.marked.unhealthy:pri1", "processor.marked.healthy:pri1", "processor.marked.unhealthy:pri1")
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
// After the end nothing is counted, and nothing is left on the sink.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(t, sink, func() {
			w, err := dynamicworkflow.New(entity, func(ctx context.Context, item string) error {
				switch item {
				case "panic":
					panic(item)
				case "slow":
					core.OperationFrom(ctx).Raise("failover.requested:pri1->pri2")
				case "hang":
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}, dynamicworkflow.Options{Interval: -1}, core.Options{Sink: sink, MaxTracked: 1, Timeout: time.Second})
			require.NoError(t, err)
			w.Metrics(time.Minute)
			for _, item := range []string{"good", "slow", "panic", "hang"} {
				w.Do(t.Context(), item)
			}
			id := core.Must(w.Enqueue(t.Context(), "hang"))
			synctest.Wait()
			w.Cancel(id, nil)
			require.Error(t, w.Wait(t.Context(), id))
			want := dynamicworkflow.Metrics{Total: 5, Succeeded: 2, Failed: 2, Failovers: 1, Concurrency: 4}
			assert.Equal(t, want, w.Metrics(time.Minute))
			time.Sleep(2 * time.Minute)
			assert.Equal(t, dynamicworkflow.Metrics{Concurrency: 4}, w.Metrics(time.Minute))
			assert.Equal(t, want, w.Metrics(0))
			require.NoError(t, w.Drain(t.Context()))
			assert.Equal(t, dynamicworkflow.Metrics{Concurrency: 4}, w.Metrics(0))
		})
	})
}

// Close may be called from a handler of a decision, and ends the interval.
func TestCloseFromInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, from := range []string{"processor.marked.unhealthy:pri1", "concurrency.increased:to=6", "workflow.measured"} {
			w := newWorkflow(t, nil, nothing, dynamicworkflow.Options{})
			w.Sink().Subscribe(from, func(signals.Signal) { w.Close() })
			require.NoError(t, w.Do(t.Context(), "one"))
			w.Sink().Raise("processor.unhealthy:pri1")
			w.Sink().Raise("system.load.low")
			time.Sleep(time.Minute)
			assert.True(t, w.Stats().Closed, from)
			assert.Equal(t, from == "workflow.measured", w.Sink().Has("workflow.measured"), from)
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
