package priorityprocessor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pp "github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var (
	errDown = errors.New("down")
	errItem = errors.New("no such order")
)

// fake is a processor whose errors the test sets.
type fake struct {
	err    atomic.Pointer[error]
	probe  atomic.Pointer[error]
	items  atomic.Int64
	probes atomic.Int64
}

func (p *fake) fail(err error)      { p.err.Store(&err) }
func (p *fake) failProbe(err error) { p.probe.Store(&err) }

func (p *fake) do(context.Context, string) error {
	p.items.Add(1)
	if err := p.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *fake) ping(context.Context) error {
	p.probes.Add(1)
	if err := p.probe.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *fake) as(name string, priority int) pp.Processor[string] {
	return pp.Processor[string]{Name: name, Priority: priority, Do: p.do}
}

func (p *fake) withProbe(name string, priority int) pp.Processor[string] {
	return pp.Processor[string]{Name: name, Priority: priority, Do: p.do, Probe: p.ping}
}

func newFailover[T any](opts pp.Options, processors ...pp.Processor[T]) *pp.Failover[T] {
	return core.Must(pp.New(processors, opts))
}

// work returns a processor that calls fn.
func work(name string, priority int, fn func(context.Context) error) pp.Processor[string] {
	return pp.Processor[string]{Name: name, Priority: priority, Do: func(ctx context.Context, _ string) error { return fn(ctx) }}
}

// settled checks that every item is counted once.
func settled[T any](t testing.TB, f *pp.Failover[T]) pp.Stats {
	t.Helper()
	s := f.Stats()
	assert.Zero(t, s.Running)
	assert.Equal(t, s.Accepted, s.Succeeded+s.Failed+s.Cancelled+s.Refused)
	return s
}

// expectAfter expects signals after that time and none before.
func expectAfter(t testing.TB, facts *coretest.Watcher, d time.Duration, names ...string) []signals.Signal {
	t.Helper()
	time.Sleep(d - 1)
	synctest.Wait()
	facts.None()
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	return facts.ExpectExactly(names...)
}

// bubble runs a subtest in a synctest bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func trip(t testing.TB, f *pp.Failover[string], n int) {
	t.Helper()
	for range n {
		require.NoError(t, f.Do(t.Context(), "item"))
	}
}

// A failed item goes to the next processor at once, until all have failed it.
func TestFailover(t *testing.T) {
	var a, b, c fake
	a.fail(errDown)
	b.fail(errItem)
	f := newFailover(pp.Options{Threshold: -1}, c.as("third", 3), a.as("first", 1), b.as("second", 2))
	facts := coretest.Watch(t, f.Sink(), "fail*,proc*")
	require.NoError(t, f.Do(t.Context(), "order-1"))
	tried := []string{"processing.failed:pri1", "failover.requested:pri1->pri2", "processing.failed:pri2", "failover.requested:pri2->pri3"}
	raised := facts.ExpectExactly(tried...)
	assert.Equal(t, pp.Report{Processor: "first", Priority: 1, To: "second", Err: errDown}, raised[1].Payload())
	assert.EqualValues(t, 2, settled(t, f).Failovers)

	c.fail(errDown)
	err := f.Do(t.Context(), "order-1")
	raised = facts.ExpectExactly(append(tried, "processing.failed:pri3", "failover.exhausted")...)
	var all *pp.Error
	require.ErrorAs(t, err, &all)
	exhausted, _ := pp.Exhausted.From(raised[5])
	assert.Same(t, all, exhausted)
	assert.Equal(t, []pp.Attempt{{"first", 1, errDown}, {"second", 2, errItem}, {"third", 3, errDown}}, all.Attempts)
	assert.ErrorIs(t, err, errDown)
	assert.ErrorIs(t, err, errItem)
	assert.EqualError(t, err, "priorityprocessor: first (priority 1): down; second (priority 2): no such order; third (priority 3): down")
	assert.Equal(t, []uint64{1, 1, 4}, []uint64{settled(t, f).Succeeded, settled(t, f).Failed, settled(t, f).Failovers})
}

// When all are unhealthy, they are tried as the last resort. With HealthyOnly, none is
// tried.
func TestAllUnhealthy(t *testing.T) {
	for _, healthyOnly := range []bool{false, true} {
		var a, b fake
		f := newFailover(pp.Options{HealthyOnly: healthyOnly, ProbeAfter: -1}, a.as("a", 1), b.as("b", 2))
		facts := coretest.Watch(t, f.Sink(), "route.changed:*, restore.*")
		require.True(t, f.MarkUnhealthy("a"))
		require.True(t, f.MarkUnhealthy("b"))
		facts.ExpectExactly("route.changed:pri2", "route.changed:none")
		err := f.Do(t.Context(), "order")
		if healthyOnly {
			assert.ErrorIs(t, err, pp.ErrNoneHealthy)
			assert.EqualValues(t, 1, settled(t, f).Refused)
			continue
		}
		assert.NoError(t, err)
		assert.EqualValues(t, 1, a.items.Load())
		facts.ExpectExactly("route.changed:pri1", "restore.primary")
		assert.True(t, f.Processors()[0].Healthy, "it has done an item")
	}
}

// With a Probe function items are not probes.
func TestProbesRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		primary.fail(errDown)
		primary.failProbe(errDown)
		sink := signals.NewSink(signals.SinkOptions{})
		f := newFailover(pp.Options{Sink: sink}, primary.withProbe("primary", 1), backup.as("backup", 2))
		defer f.Close()
		facts := coretest.Watch(t, sink, "processor.*, health.*, route.changed:*, restore.*")
		trip(t, f, 3)
		raised := facts.ExpectExactly("processor.unhealthy:pri1", "route.changed:pri2")
		assert.Equal(t, "primary", raised[0].Key)
		assert.Equal(t, pp.Report{Processor: "primary", Priority: 1, Err: errDown}, raised[0].Payload())
		assert.Equal(t, []pp.ProcessorStatus{
			{Name: "primary", Priority: 1, Since: time.Now(), Failures: 3, LastErr: errDown.Error(), NextProbe: time.Now().Add(5 * time.Second), Failed: 3},
			{Name: "backup", Priority: 2, Healthy: true, Since: time.Now(), Succeeded: 3},
		}, f.Processors(), "each item is done once")
		for i, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
			raised := expectAfter(t, facts, wait*time.Second, "health.probe.started:pri1", "health.probe.failed:pri1")
			assert.EqualValues(t, i+1, primary.probes.Load())
			next := min(2*wait, 60) * time.Second
			assert.Equal(t, pp.Report{Processor: "primary", Priority: 1, Next: next, Err: errDown}, raised[1].Payload())
			assert.Equal(t, time.Now().Add(next), f.Processors()[0].NextProbe)
		}
		trip(t, f, 10)
		assert.EqualValues(t, 3, primary.items.Load())
		primary.fail(nil)
		primary.failProbe(nil)
		raised = expectAfter(t, facts, time.Minute,
			"health.probe.started:pri1", "health.probe.succeeded:pri1", "processor.healthy:pri1", "route.changed:pri1", "restore.primary")
		assert.Equal(t, pp.Report{Priority: 1}, raised[4].Payload())
		assert.Equal(t, "priorityprocessor", raised[4].Key)
		trip(t, f, 10)
		assert.EqualValues(t, 13, primary.items.Load())
		settled(t, f)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 7, primary.probes.Load(), "what is healthy is not probed")

		primary.fail(errDown)
		trip(t, f, 3)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, 8, primary.probes.Load(), "the delay starts again")
	})
}

// Without a Probe function an item is the probe when one is due. Others go to the backup
// meanwhile.
func TestOneItemAtATimeIsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		var inside atomic.Int64
		hang := make(chan struct{})
		f := newFailover(pp.Options{}, work("primary", 1, func(ctx context.Context) error {
			inside.Add(1)
			select {
			case <-hang:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}), backup.as("backup", 2))
		f.MarkUnhealthy("primary")
		time.Sleep(5*time.Second - 1)
		trip(t, f, 5)
		assert.Zero(t, inside.Load())
		time.Sleep(time.Nanosecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.ErrorIs(t, f.Do(ctx, "first"), errItem) })
		synctest.Wait()
		assert.Zero(t, f.Processors()[0].NextProbe, "a probe runs")
		trip(t, f, 5)
		assert.EqualValues(t, 1, inside.Load())
		cancel(errItem)
		all.Wait()
		assert.NotZero(t, f.Processors()[0].NextProbe, "a cancelled item is no result")
		all.Go(func() { assert.NoError(t, f.Do(t.Context(), "second")) })
		synctest.Wait()
		trip(t, f, 5)
		assert.EqualValues(t, 2, inside.Load())
		close(hang)
		all.Wait()
		assert.True(t, f.Processors()[0].Healthy)
		settled(t, f)
	})
}

// A probe that panics, hangs or ends its goroutine has failed. Probes of a processor do not
// overlap.
func TestProbesThatPanicOrHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		var running, most, calls atomic.Int64
		kinds := []func(ctx context.Context) error{
			func(context.Context) error { panic("on purpose") },
			func(context.Context) error { runtime.Goexit(); return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			func(context.Context) error { return errDown },
			func(context.Context) error { time.Sleep(time.Hour); return errDown },
			func(context.Context) error { return nil },
		}
		f := newFailover(pp.Options{MaxProbeAfter: -1}, pp.Processor[string]{Name: "primary", Priority: 1, Do: backup.do, Probe: func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return kinds[calls.Add(1)-1](ctx)
		}}, backup.as("backup", 2))
		facts := coretest.Watch(t, f.Sink(), "health.probe.*, operation.panicked")
		f.MarkUnhealthy("primary")
		expectAfter(t, facts, 5*time.Second, "health.probe.started:pri1", "health.probe.failed:pri1", "operation.panicked")
		expectAfter(t, facts, 10*time.Second, "health.probe.started:pri1", "health.probe.failed:pri1")
		expectAfter(t, facts, 20*time.Second, "health.probe.started:pri1")
		expectAfter(t, facts, 5*time.Second, "health.probe.failed:pri1")
		expectAfter(t, facts, 40*time.Second, "health.probe.started:pri1", "health.probe.failed:pri1")
		expectAfter(t, facts, 80*time.Second, "health.probe.started:pri1")
		f.MarkHealthy("primary")
		f.MarkUnhealthy("primary")
		expectAfter(t, facts, time.Hour, "health.probe.started:pri1", "health.probe.succeeded:pri1") // the next probe waits for the one that hangs
		assert.EqualValues(t, 1, most.Load())
	})
}

func TestCloseWaitsForProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		var ended atomic.Bool
		f := newFailover(pp.Options{ProbeTimeout: -1}, pp.Processor[string]{Name: "a", Priority: 1, Do: a.do, Probe: func(ctx context.Context) error {
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), core.ErrClosed)
			time.Sleep(time.Minute)
			ended.Store(true)
			return ctx.Err()
		}})
		f.MarkUnhealthy("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				assert.NoError(t, f.Close())
				assert.True(t, ended.Load())
			})
		}
		all.Wait()
		assert.ErrorIs(t, f.Do(t.Context(), "late"), core.ErrClosed)
		assert.EqualValues(t, 1, f.Stats().Rejected)
		f.Sink().RaiseKey(pp.CommandHealthy, "a")
		assert.False(t, f.Processors()[0].Healthy, "it does not listen any more")
		f.MarkHealthy("a")
		f.MarkUnhealthy("a")
		time.Sleep(time.Hour)
		assert.Zero(t, f.Processors()[0].NextProbe)
	})
}

// Close does not wait for a processor, a Probe or a handler that calls it.
func TestCloseFromAnywhere(t *testing.T) {
	for _, from := range []string{"Do", "Probe", "processor.unhealthy:*", "health.probe.started:*"} {
		synctest.Test(t, func(t *testing.T) {
			var f *pp.Failover[string]
			closeFrom := func(where string) {
				if where == from {
					assert.NoError(t, f.Close())
				}
			}
			p := work("a", 1, func(context.Context) error { closeFrom("Do"); return errDown })
			p.Probe = func(context.Context) error { closeFrom("Probe"); return nil }
			f = newFailover(pp.Options{Threshold: 1}, p)
			f.Sink().Subscribe("processor.unhealthy:*, health.probe.started:*", func(s signals.Signal) { closeFrom(s.Name[:len(s.Name)-4] + "*") })
			assert.ErrorIs(t, f.Do(t.Context(), "item"), errDown)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			assert.Equal(t, core.ErrClosed, f.Do(t.Context(), "late"))
		})
	}
}

// The end of the item's context ends the item, and is not a failure of the processor.
func TestCancellationIsNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		hangs := work("slow", 1, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		f := newFailover(pp.Options{Threshold: 1}, hangs, backup.as("backup", 2))
		why := errors.New("the user has left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		assert.Equal(t, why, f.Do(ctx, "item"))
		assert.Equal(t, why, f.Do(ctx, "item"), "and it does not begin")
		s := settled(t, f)
		assert.EqualValues(t, 2, s.Cancelled)
		assert.True(t, f.Processors()[0].Healthy)

		ctx, cancelCause := context.WithCancelCause(t.Context())
		f = newFailover(pp.Options{}, work("fails", 1, func(context.Context) error { return errDown }),
			work("stops", 2, func(ctx context.Context) error { cancelCause(why); return ctx.Err() }), backup.as("backup", 3))
		err := f.Do(ctx, "item")
		assert.ErrorIs(t, err, why)
		assert.ErrorIs(t, err, errDown)
		assert.EqualError(t, err, "priorityprocessor: fails (priority 1): down; then stopped: the user has left")
		assert.Zero(t, backup.items.Load())
	})
}

// If a processor returns at the deadline of the item, that is no failure either, whichever
// of the two comes first.
func TestTheDeadlineOfTheItem(t *testing.T) {
	for _, timeout := range []time.Duration{-1, 0, time.Second} {
		for range 100 {
			synctest.Test(t, func(t *testing.T) {
				var backup fake
				f := newFailover(pp.Options{Threshold: 1, Timeout: timeout}, work("remote", 1, func(ctx context.Context) error {
					if timeout <= 0 {
						time.Sleep(time.Second) // the remote side knows the deadline
					} else {
						<-ctx.Done()
					}
					return context.DeadlineExceeded
				}), backup.as("backup", 2))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.Equal(t, context.DeadlineExceeded, f.Do(ctx, "item"))
				require.True(t, f.Processors()[0].Healthy)
				require.Zero(t, backup.items.Load())
				require.EqualValues(t, 1, settled(t, f).Cancelled)
			})
		}
	}
}

// A processor that hangs has failed when its Timeout is over.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		hangs := work("hangs", 1, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		f := newFailover(pp.Options{Threshold: 1, Timeout: time.Second}, hangs, backup.as("backup", 2))
		begun := time.Now()
		require.NoError(t, f.Do(t.Context(), "item"))
		assert.Equal(t, time.Second, time.Since(begun))
		assert.False(t, f.Processors()[0].Healthy)
		assert.Equal(t, context.DeadlineExceeded.Error(), f.Processors()[0].LastErr)
	})
}

func TestFailoverIf(t *testing.T) {
	var primary, backup fake
	primary.fail(errDown)
	f := newFailover(pp.Options{Verbose: true, FailoverIf: func(err error) bool { return !errors.Is(err, errItem) }},
		primary.as("primary", 1), backup.as("backup", 2))
	trip(t, f, 2)
	primary.fail(errItem)
	facts := coretest.Watch(t, f.Sink(), "processing.*, failover.*")
	assert.Equal(t, errItem, f.Do(t.Context(), "item"), "not wrapped")
	facts.ExpectExactly("processing.started:pri1")
	assert.Zero(t, f.Processors()[0].Failures, "it works")
	primary.fail(errDown)
	backup.fail(errItem)
	err := f.Do(t.Context(), "item")
	assert.ErrorIs(t, err, errItem)
	assert.ErrorIs(t, err, errDown)
	assert.EqualValues(t, 2, settled(t, f).Failed)
}

// A panic of FailoverIf passes through. The error of the processor counts as its failure.
func TestFailoverIfPanics(t *testing.T) {
	var p fake
	p.fail(errDown)
	f := newFailover(pp.Options{FailoverIf: func(error) bool { panic("oops") }}, p.as("p", 1))
	assert.PanicsWithValue(t, "oops", func() { _ = f.Do(t.Context(), "item") })
	assert.EqualValues(t, 1, settled(t, f).Failed)
	assert.Equal(t, errDown.Error(), f.Processors()[0].LastErr)
}

// A panic is a failure, and passes through to the caller after it is recorded.
func TestPanicAndGoexit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errDown) }, "Goexit": runtime.Goexit} {
		bubble(t, name, func(t *testing.T) {
			var backup fake
			f := newFailover(pp.Options{Threshold: 2}, work("primary", 1, func(context.Context) error { end(); return nil }), backup.as("backup", 2))
			facts := coretest.Watch(t, f.Sink(), "processing.failed:*, processor.unhealthy:*")
			c := core.Must(core.NewCoordinator(f.Do, core.Options{Sink: f.Sink()}))
			var p *core.PanicError
			for range 2 {
				require.ErrorAs(t, c.Do(t.Context(), "item"), &p)
			}
			for _, s := range facts.ExpectExactly("processing.failed:pri1", "processing.failed:pri1", "processor.unhealthy:pri1") {
				assert.ErrorContains(t, s.Payload().(pp.Report).Err, "priorityprocessor: the processor panicked")
			}
			require.NoError(t, c.Do(t.Context(), "item"))
			s := settled(t, f)
			assert.EqualValues(t, 2, s.Failed)
			assert.EqualValues(t, 1, s.Succeeded)
			time.Sleep(5 * time.Second)
			require.Error(t, c.Do(t.Context(), "item"), "it is the probe")
			require.NoError(t, c.Do(t.Context(), "item"))
			assert.NotZero(t, f.Processors()[0].NextProbe, "no probe runs")
		})
	}
}

// Handlers that end the goroutine, as t.FailNow does, lose no item, no probe and no
// signal.
func TestHandlersThatEndTheGoroutine(t *testing.T) {
	for _, pattern := range []string{
		"processing.started:*", "processing.complete:*", "processing.failed:*", "failover.*", "processor.*", "route.*", "restore.*", "health.probe.*", "p*,f*,r*,h*",
	} {
		bubble(t, pattern, func(t *testing.T) {
			var primary, backup fake
			primary.fail(errDown)
			f := newFailover(pp.Options{Threshold: 1, Verbose: true}, primary.withProbe("primary", 1), backup.as("backup", 2))
			facts := coretest.Watch(t, f.Sink(), "processor.*,route.*,restore.*,health.*")
			f.Sink().Subscribe(pattern, func(signals.Signal) { runtime.Goexit() })
			c := core.Must(core.NewCoordinator(f.Do, core.Options{Sink: f.Sink()}))
			err := c.Do(t.Context(), "item")
			if pattern == "processing.started:*" || pattern == "p*,f*,r*,h*" {
				assert.Error(t, err)
				assert.EqualValues(t, 1, settled(t, f).Cancelled, "before a processor got it")
				go f.MarkUnhealthy("primary")
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			settled(t, f)
			if pattern == "health.probe.*" || pattern == "p*,f*,r*,h*" {
				facts.ExpectExactly("processor.unhealthy:pri1", "route.changed:pri2", "health.probe.started:pri1", "health.probe.failed:pri1")
				assert.Equal(t, 10*time.Second, time.Until(f.Processors()[0].NextProbe), "there will be another probe")
				require.NoError(t, f.Close())
				return
			}
			assert.True(t, f.Processors()[0].Healthy, "a probe has restored it")
			facts.ExpectExactly("processor.unhealthy:pri1", "route.changed:pri2",
				"health.probe.started:pri1", "health.probe.succeeded:pri1", "processor.healthy:pri1", "route.changed:pri1", "restore.primary")
		})
	}
}

func TestPriorityIsInTheName(t *testing.T) {
	var a, b fake
	f := newFailover(pp.Options{Verbose: true, Name: "orders"}, a.as("a", 1), b.as("b", 22))
	c := core.Must(core.NewKeyedCoordinator(func(item string) string { return item }, f.Do, core.Options{Sink: f.Sink()}))
	facts := coretest.Watch(t, f.Sink(), "p*,route.*")
	require.NoError(t, c.Do(t.Context(), "order-1"))
	a.fail(errDown)
	require.NoError(t, c.Do(t.Context(), "order-2"))
	f.MarkUnhealthy("a")
	raised := facts.ExpectExactly(
		"processing.started:pri1", "processing.complete:pri1",
		"processing.started:pri1", "processing.failed:pri1", "processing.started:pri22", "processing.complete:pri22",
		"processor.unhealthy:pri1", "route.changed:pri22",
	)
	for i, key := range []string{"order-1", "order-1", "order-2", "order-2", "order-2", "order-2", "a", "orders"} {
		assert.Equal(t, key, raised[i].Key)
	}
	assert.Equal(t, pp.Report{Processor: "b", Priority: 22}, raised[5].Payload())
	assert.NotZero(t, raised[5].Operation, "the operation of the item raises it")
}

// Another part of the program routes all items, or the items of a key, only by signals on
// the sink.
func TestRouterFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried string
		errs := map[string]error{}
		p := func(name string, priority int) pp.Processor[string] {
			return work(name, priority, func(context.Context) error { tried += name; return errs[name] })
		}
		sink := signals.NewSink(signals.SinkOptions{Capacity: 10})
		before := sink.Hold(pp.CommandRoute+"3", "", 0)
		f := newFailover(pp.Options{Sink: sink}, p("a", 1), p("b", 2), p("c", 3))
		orders := core.Must(core.NewKeyedCoordinator(func(item string) string { return item }, f.Do, core.Options{}))
		took := func(item string) string {
			tried = ""
			require.NoError(t, orders.Do(t.Context(), item))
			return tried
		}
		assert.Equal(t, "c", took("order-1"), "it was held before New")
		before()
		assert.Equal(t, "a", took("order-1"))
		release := sink.Hold(pp.CommandRoute+"2", "", 0)
		assert.Equal(t, "b", took("order-1"))
		for range 20 {
			sink.Raise("chatter")
		}
		assert.Equal(t, "b", took("order-1"), "a held fact is not pushed out")
		errs["b"] = errDown
		assert.Equal(t, "bc", took("order-1"), "then lower ones")
		errs["c"] = errDown
		assert.Equal(t, "bca", took("order-1"), "then higher ones")
		clear(errs)
		one := sink.Hold(pp.CommandRoute+"3", "order-3", time.Minute)
		assert.Equal(t, "c", took("order-3"), "the newest counts")
		assert.Equal(t, "b", took("order-1"), "it has another key")
		release()
		assert.Equal(t, "a", took("order-1"))
		assert.Equal(t, "c", took("order-3"))
		time.Sleep(time.Minute)
		assert.Equal(t, "a", took("order-3"), "the lease is over")
		one()
		sink.Raise(pp.CommandRoute + "4")
		sink.Raise(pp.CommandRoute + "02")
		sink.Raise(pp.CommandRoute + "2:order-1")
		sink.Raise("app." + pp.CommandRoute + "2")
		assert.Equal(t, "a", took("order-1"), "no such priority")
		sink.Raise(pp.CommandRoute + "2")
		assert.Equal(t, "b", took("order-1"))
		assert.Equal(t, 1, sink.Retract(pp.CommandRoute+"2"))
		assert.Equal(t, "a", took("order-1"))
	})
}

// Another part of the program probes, and reports only by signals on the sink.
func TestProberFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b, c fake
		sink := signals.NewSink(signals.SinkOptions{})
		f := newFailover(pp.Options{Sink: sink, ProbeAfter: -1}, a.withProbe("a", 1), b.withProbe("b", 2), c.as("c", 2))
		healthy := func() (names string) {
			for _, p := range f.Processors() {
				if p.Healthy {
					names += p.Name
				}
			}
			return names
		}
		defer sink.Subscribe("processor.unhealthy:*", func(s signals.Signal) {
			priority, ok := signals.ParseCommand(s.Name, "processor.unhealthy")
			require.True(t, ok)
			time.AfterFunc(time.Minute, func() { sink.Because(s).RaiseKey("processor.mark.healthy:"+priority, s.Key) })
		})()
		a.fail(errDown)
		trip(t, f, 3)
		assert.Equal(t, "bc", healthy())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "abc", healthy())
		for _, c := range []struct{ name, key, want string }{
			{"processor.mark.unhealthy:pri1", "b", "abc"}, // no such processor
			{"processor.mark.unhealthy", "nobody", "abc"},
			{"processor.mark.unhealthy:pri3", "", "abc"},
			{"processor.mark.unhealthy:", "", "abc"},
			{"processor.mark.unhealthy:pri2", "", "a"},
			{"processor.mark.healthy", "c", "ac"},
			{"processor.mark.unhealthy", "", ""},
		} {
			sink.RaiseKey(c.name, c.key)
			assert.Equal(t, c.want, healthy(), c.name)
		}
		assert.Zero(t, f.Processors()[0].NextProbe)
		assert.Zero(t, a.probes.Load())
	})
}

// Commands match whole names, and no signal that a Failover raises is a command.
func TestCommandsMatchWholeNames(t *testing.T) {
	var a fake
	f := newFailover(pp.Options{}, a.as("a", 1))
	for _, name := range []string{
		pp.CommandUnhealthy + "ish", "x" + pp.CommandUnhealthy, "x." + pp.CommandUnhealthy,
		pp.SignalUnhealthy, pp.SignalUnhealthy + ":pri1", "processor.a.unhealthy",
	} {
		f.Sink().RaiseKey(name, "a")
		assert.True(t, f.Processors()[0].Healthy, name)
	}
	for _, name := range []string{
		pp.SignalStarted, pp.SignalCompleted, pp.SignalFailed, pp.SignalFailover, pp.Exhausted.Name(), pp.SignalUnhealthy, pp.SignalHealthy,
		pp.SignalRoute, pp.Restored.Name(), pp.SignalProbeStarted, pp.SignalProbeSucceeded, pp.SignalProbeFailed,
	} {
		assert.False(t, signals.Match(pp.CommandHealthy+"*,"+pp.CommandUnhealthy+"*,"+pp.CommandRoute+"*", name+":pri1"), name)
	}
}

func TestMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b fake
		f := newFailover(pp.Options{}, a.withProbe("a", 1), b.as("b", 2))
		defer f.Close()
		facts := coretest.Watch(t, f.Sink(), "processor.*, operation.started")
		assert.False(t, f.MarkUnhealthy("nobody"))
		assert.False(t, f.MarkHealthy("nobody"))
		assert.True(t, f.MarkHealthy("a"))
		facts.None()
		a.fail(errDown)
		trip(t, f, 2)
		assert.True(t, f.MarkHealthy("a"))
		trip(t, f, 2)
		facts.None() // the count started again
		assert.True(t, f.MarkUnhealthy("a"))
		assert.True(t, f.MarkUnhealthy("a"))
		assert.Equal(t, pp.Report{Processor: "a", Priority: 1}, facts.ExpectExactly("processor.unhealthy:pri1")[0].Payload())
		assert.True(t, f.MarkHealthy("a"))
		facts.ExpectExactly("processor.healthy:pri1")
		time.Sleep(time.Hour)
		facts.None() // the timer is stopped
	})
}

// Signals about health come in the order of the changes, even when a handler changes the
// health.
func TestSignalsComeInOrder(t *testing.T) {
	var a fake
	f := newFailover(pp.Options{}, a.as("a", 1))
	f.Sink().Subscribe("processor.unhealthy:*", func(signals.Signal) { f.MarkHealthy("a") })
	facts := coretest.Watch(t, f.Sink(), "processor.*, route.changed:*")
	f.MarkUnhealthy("a")
	facts.ExpectExactly("processor.unhealthy:pri1", "route.changed:none", "processor.healthy:pri1", "route.changed:pri1")
}

// As the work of a coordinator, items of many goroutines are bounded and all counted.
func TestManyAtOnceThroughACoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		var running, most, calls atomic.Int64
		var backup fake
		f := newFailover(pp.Options{ProbeAfter: time.Millisecond}, pp.Processor[string]{Name: "primary", Priority: 1, Do: func(context.Context, string) error {
			m := running.Add(1)
			for have := most.Load(); m > have && !most.CompareAndSwap(have, m); have = most.Load() {
			}
			defer running.Add(-1)
			time.Sleep(time.Duration(m%5) * time.Millisecond)
			if calls.Add(1)%5 != 0 {
				return errDown
			}
			return nil
		}, Probe: backup.ping}, backup.as("backup", 2), work("other", 2, func(context.Context) error { return errDown }))
		c := core.Must(core.NewCoordinator(f.Do, core.Options{MaxConcurrency: 8}))
		for range n {
			_, err := c.Enqueue(t.Context(), "item")
			require.NoError(t, err)
		}
		require.NoError(t, c.Drain(t.Context()))
		require.NoError(t, f.Close())
		s := settled(t, f)
		assert.EqualValues(t, n, s.Succeeded)
		assert.LessOrEqual(t, most.Load(), int64(8))
	})
}

// A handler that blocks holds up one goroutine only. Signals beyond a limit are dropped and
// counted.
func TestHandlerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		f := newFailover(pp.Options{}, a.as("a", 1))
		hang := make(chan struct{})
		defer f.Sink().Subscribe("processor.unhealthy:*", func(signals.Signal) { <-hang })()
		go f.MarkUnhealthy("a")
		synctest.Wait()
		for range 1000 {
			f.MarkHealthy("a")
			f.MarkUnhealthy("a")
		}
		assert.Positive(t, f.Stats().SignalsDropped)
		require.NoError(t, f.Do(t.Context(), "item"))
		close(hang)
		synctest.Wait()
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	var a fake
	ok := []pp.Processor[string]{a.as("a", 1)}
	var many []pp.Processor[string]
	for i := range 65 {
		many = append(many, a.as(strings.Repeat("x", i+1), i+1))
	}
	_, err := pp.New(many[:64], pp.Options{})
	require.NoError(t, err)
	for want, try := range map[string]struct {
		processors []pp.Processor[string]
		opts       pp.Options
	}{
		"there must be at least one processor":                         {nil, pp.Options{}},
		"there are 65 processors, there may be 64":                     {many, pp.Options{}},
		`the name of processor 2 is " ", it must not be blank`:         {append(ok, a.as(" ", 1)), pp.Options{}},
		`two of the processors have the name "a"`:                      {append(ok, a.as("a", 2)), pp.Options{}},
		`Priority of "b" is 0, it must be at least 1`:                  {append(ok, a.as("b", 0)), pp.Options{}},
		`Do of "b" is nil, it must be a function`:                      {append(ok, pp.Processor[string]{Name: "b", Priority: 1}), pp.Options{}},
		`Options.MaxProbeAfter of "x" is 1s, it must be at least Prob`: {ok, pp.Options{Name: "x", MaxProbeAfter: time.Second}},
	} {
		_, err := pp.New(try.processors, try.opts)
		assert.ErrorContains(t, err, "priorityprocessor: "+want)
	}
	newFailover(pp.Options{ProbeAfter: time.Hour}, ok...)
}

// Do returns the result of the processor that succeeds, or that blames the item. Results of
// failed attempts are dropped.
func TestTheResult(t *testing.T) {
	errItem := errors.New("no such item")
	answers := map[string]error{"a": errDown}
	work := func(name string) pp.ResultProcessor[string, string] {
		return pp.ResultProcessor[string, string]{Name: name, Priority: 1, Do: func(_ context.Context, item string) (string, error) {
			return item + " by " + name, answers[name]
		}}
	}
	f, err := pp.NewResult([]pp.ResultProcessor[string, string]{work("a"), work("b")}, pp.Options{
		Threshold: -1, FailoverIf: func(err error) bool { return err != errItem },
	})
	require.NoError(t, err)
	defer f.Close()
	for _, last := range []struct {
		b    error
		want string
	}{{nil, "item by b"}, {errItem, "item by b"}, {errDown, ""}} {
		answers["b"] = last.b
		for range 2 { // they take turns
			got, err := f.Do(t.Context(), "item")
			assert.Equal(t, last.want, got)
			assert.ErrorIs(t, err, last.b)
		}
	}
}

// An item that the first processor does costs no allocation.
func TestDoAllocatesNothing(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	var a, b fake
	f := newFailover(pp.Options{}, a.as("a", 1), b.as("b", 2))
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { f.Do(ctx, "item") }))
	f.MarkUnhealthy("a")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { f.Do(ctx, "item") }), "by the backup")
}

func TestStatusInJSON(t *testing.T) {
	text, err := json.Marshal([]pp.ProcessorStatus{
		{Name: "primary", Priority: 1, Failures: 3, LastErr: errDown.Error()},
		{Name: "backup", Priority: 2, Healthy: true},
	})
	require.NoError(t, err)
	assert.JSONEq(t, fmt.Sprintf(`[
		{"name": "primary", "priority": 1, "healthy": false, "since": "0001-01-01T00:00:00Z", "failures": 3,
			"succeeded": 0, "failed": 0, "error": %q},
		{"name": "backup", "priority": 2, "healthy": true, "since": "0001-01-01T00:00:00Z", "failures": 0,
			"succeeded": 0, "failed": 0}
	]`, errDown.Error()), string(text))
}
