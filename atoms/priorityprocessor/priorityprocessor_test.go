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
)

var (
	errDown = errors.New("down")
	errItem = errors.New("no such order")
)

// fake is a processor that does what it is told to.
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

func newFailover[T any](t testing.TB, opts pp.Options, processors ...pp.Processor[T]) *pp.Failover[T] {
	t.Helper()
	f, err := pp.New(processors, opts)
	require.NoError(t, err)
	return f
}

// settled checks that no item is lost count of.
func settled[T any](t testing.TB, f *pp.Failover[T]) pp.Stats {
	t.Helper()
	s := f.Stats()
	assert.Zero(t, s.Running)
	assert.Equal(t, s.Accepted, s.Succeeded+s.Failed+s.Cancelled+s.Refused)
	var attempts uint64
	for _, p := range f.Processors() {
		assert.Zero(t, p.Running, p.Name)
		attempts += p.Succeeded + p.Failed + p.Cancelled
	}
	assert.Equal(t, s.Attempts, attempts)
	return s
}

func trip(t testing.TB, f *pp.Failover[string], n int) {
	t.Helper()
	for range n {
		require.NoError(t, f.Do(t.Context(), "item"))
	}
}

// Weak point: failed work is not handed to the backup; the failover signal is raised
// once, and nobody submits the work again.
func TestFailedItemGoesToTheNextAtOnce(t *testing.T) {
	var a, b, c fake
	a.fail(errDown)
	b.fail(errDown)
	sink := core.NewSink(core.SinkOptions{})
	signals := coretest.Watch(t, sink, "fail*,proc*")
	f := newFailover(t, pp.Options{Sink: sink, Threshold: -1}, c.as("third", 3), a.as("first", 1), b.as("second", 2))
	require.NoError(t, f.Do(t.Context(), "order-1"))
	raised := signals.ExpectExactly("processing.failed:pri1", "failover.requested:pri1->pri2", "processing.failed:pri2", "failover.requested:pri2->pri3")
	assert.Equal(t, pp.Report{Processor: "first", Priority: 1, To: "second", ToPriority: 2, Err: errDown}, raised[1].Payload())
	for range 9 {
		require.NoError(t, f.Do(t.Context(), "order"))
	}
	assert.EqualValues(t, 10, a.items.Load())
	assert.EqualValues(t, 10, b.items.Load())
	assert.EqualValues(t, 10, c.items.Load())
	s := settled(t, f)
	assert.EqualValues(t, 10, s.Succeeded)
	assert.EqualValues(t, 20, s.Failovers)
}

// Weak points: priority 1 takes all work, healthy or not; once routing works the same
// item is processed twice; priorities above 1 never process anything.
func TestUnhealthyPrimaryGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		primary.fail(errDown)
		f := newFailover(t, pp.Options{}, primary.as("primary", 1), backup.as("backup", 2))
		trip(t, f, 10)
		assert.EqualValues(t, 3, primary.items.Load(), "three failures in a row are the threshold")
		assert.EqualValues(t, 10, backup.items.Load(), "and each item is done once")
		primary.fail(nil)
		trip(t, f, 10)
		assert.EqualValues(t, 3, primary.items.Load())
		assert.EqualValues(t, 20, backup.items.Load())
		assert.Equal(t, []pp.ProcessorStatus{
			{Name: "primary", Priority: 1, Since: time.Now(), Failures: 3, LastErr: errDown, NextProbe: time.Now().Add(5 * time.Second), Failed: 3},
			{Name: "backup", Priority: 2, Healthy: true, Since: time.Now(), Succeeded: 20},
		}, f.Processors())
	})
}

func TestSuccessBeginsTheCountAnew(t *testing.T) {
	var primary, backup fake
	f := newFailover(t, pp.Options{}, primary.as("primary", 1), backup.as("backup", 2))
	for range 10 {
		primary.fail(errDown)
		trip(t, f, 2)
		primary.fail(nil)
		trip(t, f, 1)
	}
	assert.True(t, f.Processors()[0].Healthy)
	assert.EqualValues(t, 30, primary.items.Load())
}

func TestThreshold(t *testing.T) {
	for threshold, want := range map[int]int64{-1: 100, 0: 3, 1: 1, 7: 7} {
		var primary, backup fake
		primary.fail(errDown)
		f := newFailover(t, pp.Options{Threshold: threshold}, primary.as("primary", 1), backup.as("backup", 2))
		trip(t, f, 100)
		assert.Equal(t, want, primary.items.Load(), "threshold %d", threshold)
	}
}

// Weak point: the last in rank still asks for failover to a priority that does not
// exist.
func TestLastAsksForNoFailover(t *testing.T) {
	var primary, backup fake
	primary.fail(errDown)
	backup.fail(errItem)
	sink := core.NewSink(core.SinkOptions{})
	f := newFailover(t, pp.Options{Sink: sink}, primary.as("primary", 1), backup.as("backup", 2))
	signals := coretest.Watch(t, sink, "failover.*")
	err := f.Do(t.Context(), "order-1")
	raised := signals.ExpectExactly("failover.requested:pri1->pri2", "failover.exhausted")
	var all *pp.Error
	require.ErrorAs(t, err, &all)
	assert.Same(t, all, raised[1].Payload())
	assert.Equal(t, []pp.Attempt{{"primary", 1, errDown}, {"backup", 2, errItem}}, all.Attempts)
	assert.ErrorIs(t, err, errDown)
	assert.ErrorIs(t, err, errItem)
	assert.EqualError(t, err, "priorityprocessor: primary (priority 1): down; backup (priority 2): no such order")
	assert.EqualValues(t, 1, settled(t, f).Failed)
}

// Weak point of the companions: all are down, and the lowest rank is used without
// saying so.
func TestAllDown(t *testing.T) {
	for _, healthyOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var a, b fake
			sink := core.NewSink(core.SinkOptions{})
			f := newFailover(t, pp.Options{Sink: sink, HealthyOnly: healthyOnly}, a.withProbe("a", 1), b.withProbe("b", 2))
			defer f.Close()
			signals := coretest.Watch(t, sink, "route.assigned:*, restore.*")
			require.True(t, f.MarkUnhealthy("a"))
			require.True(t, f.MarkUnhealthy("b"))
			signals.ExpectExactly("route.assigned:pri2", "route.assigned:none")
			err := f.Do(t.Context(), "order")
			if healthyOnly {
				assert.ErrorIs(t, err, pp.ErrNoneHealthy)
				assert.EqualValues(t, 1, settled(t, f).Refused)
				signals.None()
				return
			}
			assert.NoError(t, err, "as the last resort, in order")
			assert.EqualValues(t, 1, a.items.Load())
			signals.ExpectExactly("route.assigned:pri1", "restore.primary")
			assert.True(t, f.Processors()[0].Healthy, "it has shown that it works")
			a.fail(errDown)
			assert.NoError(t, f.Do(t.Context(), "order"), "those that are unhealthy are tried after the others")
			assert.EqualValues(t, 1, b.items.Load())
		})
	}
}

func TestSamePriorityTakesTurns(t *testing.T) {
	var a, b, c, d fake
	f := newFailover(t, pp.Options{Threshold: 1, HealthyOnly: true, ProbeAfter: -1}, a.as("a", 1), b.as("b", 1), c.as("c", 1), d.as("d", 2))
	trip(t, f, 9)
	assert.Equal(t, [4]int64{3, 3, 3, 0}, [4]int64{a.items.Load(), b.items.Load(), c.items.Load(), d.items.Load()})
	b.fail(errDown)
	trip(t, f, 8) // one of them at b first
	assert.Equal(t, [4]int64{7, 4, 7, 0}, [4]int64{a.items.Load(), b.items.Load(), c.items.Load(), d.items.Load()})
	a.fail(errDown)
	c.fail(errDown)
	trip(t, f, 5)
	assert.EqualValues(t, 5, d.items.Load())
}

// With a Probe function nobody asks an item to find out.
func TestProbesRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		primary.fail(errDown)
		primary.failProbe(errDown)
		sink := core.NewSink(core.SinkOptions{})
		f := newFailover(t, pp.Options{Sink: sink}, primary.withProbe("primary", 1), backup.as("backup", 2))
		defer f.Close()
		signals := coretest.Watch(t, sink, "processor.*, probe.*, route.assigned:*, restore.*")
		trip(t, f, 3)
		raised := signals.ExpectExactly("processor.unhealthy:pri1", "route.assigned:pri2")
		assert.Equal(t, "primary", raised[0].Key)
		assert.Equal(t, pp.Report{Processor: "primary", Priority: 1, Failures: 3, Err: errDown}, raised[0].Payload())
		for i, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
			time.Sleep(wait*time.Second - 1)
			synctest.Wait()
			signals.None()
			assert.EqualValues(t, i, primary.probes.Load())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			raised := signals.ExpectExactly("probe.starting:pri1", "probe.failed:pri1")
			next := min(2*wait, 60) * time.Second
			assert.Equal(t, pp.Report{Processor: "primary", Priority: 1, Next: next, Err: errDown}, raised[1].Payload())
			assert.Equal(t, time.Now().Add(next), f.Processors()[0].NextProbe)
		}
		trip(t, f, 10)
		assert.EqualValues(t, 3, primary.items.Load())
		primary.fail(nil)
		primary.failProbe(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		raised = signals.ExpectExactly("probe.starting:pri1", "probe.success:pri1", "processor.healthy:pri1", "route.assigned:pri1", "restore.primary")
		assert.Equal(t, pp.Report{Priority: 2, ToPriority: 1}, raised[4].Payload())
		assert.Equal(t, "priorityprocessor", raised[4].Key)
		trip(t, f, 10)
		assert.EqualValues(t, 13, primary.items.Load())
		s := settled(t, f)
		assert.EqualValues(t, 7, s.Probes)
		assert.EqualValues(t, 1, s.Unhealthy)
		assert.EqualValues(t, 1, s.Restored)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 7, primary.probes.Load(), "what is healthy is not probed")

		primary.fail(errDown)
		trip(t, f, 3)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, 8, primary.probes.Load(), "the wait begins anew")
	})
}

// Without a Probe function the item that comes when one is due is the probe.
func TestItemIsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		primary.fail(errDown)
		f := newFailover(t, pp.Options{HealthyOnly: true}, primary.as("primary", 1), backup.as("backup", 2))
		trip(t, f, 3)
		for _, wait := range []time.Duration{5, 10, 20, 40, 60, 60} {
			before := primary.items.Load()
			time.Sleep(wait*time.Second - 1)
			trip(t, f, 5)
			assert.Equal(t, before, primary.items.Load(), "just before")
			time.Sleep(time.Nanosecond)
			trip(t, f, 5)
			assert.Equal(t, before+1, primary.items.Load(), "one is tried, and no item is lost by that")
		}
		time.Sleep(time.Hour)
		cancelled, cancel := context.WithCancel(t.Context())
		primary.err.Store(nil)
		stop := errors.New("stop")
		primary.fail(stop)
		cancel()
		assert.ErrorIs(t, f.Do(cancelled, "item"), context.Canceled)
		primary.fail(nil)
		trip(t, f, 5)
		assert.True(t, f.Processors()[0].Healthy)
	})
}

// While an item is the probe, others go on to the backup.
func TestOneItemAtATimeIsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		var inside atomic.Int64
		hang := make(chan struct{})
		f := newFailover(t, pp.Options{}, pp.Processor[string]{Name: "primary", Priority: 1, Do: func(ctx context.Context, _ string) error {
			inside.Add(1)
			select {
			case <-hang:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}, backup.as("backup", 2))
		f.MarkUnhealthy("primary")
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.ErrorIs(t, f.Do(ctx, "first"), errItem) })
		synctest.Wait()
		assert.True(t, f.Processors()[0].Probing)
		trip(t, f, 5)
		assert.EqualValues(t, 1, inside.Load())
		cancel(errItem)
		all.Wait()
		assert.False(t, f.Processors()[0].Probing, "who was cancelled has found out nothing")
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

// Weak points of the prober: after a probe that went wrong the next is not put off,
// and probes overlap.
func TestProbesThatPanicOrHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		var running, most, calls atomic.Int64
		kinds := []func(ctx context.Context) error{
			func(context.Context) error { panic("on purpose") },
			func(context.Context) error { runtime.Goexit(); return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			func(context.Context) error { time.Sleep(time.Hour); return errDown },
			func(context.Context) error { return nil },
		}
		f := newFailover(t, pp.Options{}, pp.Processor[string]{Name: "primary", Priority: 1, Do: backup.do, Probe: func(ctx context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			return kinds[calls.Add(1)-1](ctx)
		}}, backup.as("backup", 2))
		defer f.Close()
		signals := coretest.Watch(t, f.Sink(), "probe.*, atom.panic")
		f.MarkUnhealthy("primary")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		signals.ExpectExactly("probe.starting:pri1", "probe.failed:pri1", "atom.panic")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		signals.ExpectExactly("probe.starting:pri1", "probe.failed:pri1")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		signals.ExpectExactly("probe.starting:pri1")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		signals.ExpectExactly("probe.failed:pri1")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		signals.ExpectExactly("probe.starting:pri1")
		f.Reset("primary")
		f.MarkUnhealthy("primary")
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		signals.None() // the next one waits for the one that hangs
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		signals.ExpectExactly("probe.starting:pri1", "probe.success:pri1")
		assert.EqualValues(t, 1, most.Load())
		assert.True(t, f.Processors()[0].Healthy)
	})
}

// A handler that ends the goroutine before a probe begins does not end all probing.
func TestHandlerOfStartedEndsTheGoroutineOfAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		probe := func(context.Context) error { return nil }
		f := newFailover(t, pp.Options{}, pp.Processor[string]{Name: "primary", Priority: 1, Do: backup.do, Probe: probe}, backup.as("backup", 2))
		f.Sink().Subscribe(core.SignalStarted, func(core.Signal) { runtime.Goexit() })
		f.MarkUnhealthy("primary")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.True(t, f.Processors()[0].Healthy)
		require.NoError(t, f.Close())
	})
}

// Weak point: dispose does not wait; nothing is given a context.
func TestCloseWaitsForProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		var ended atomic.Bool
		f := newFailover(t, pp.Options{ProbeTimeout: -1}, pp.Processor[string]{Name: "a", Priority: 1, Do: a.do, Probe: func(ctx context.Context) error {
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
		assert.False(t, f.Processors()[0].Healthy, "a closed one heeds nothing")
		f.Reset("a")
		f.MarkUnhealthy("a")
		time.Sleep(time.Hour)
		assert.Zero(t, f.Processors()[0].NextProbe)
	})
}

func TestCloseFromAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *pp.Failover[string]
		closeIt := func() { assert.NoError(t, f.Close()) }
		f = newFailover(t, pp.Options{}, pp.Processor[string]{Name: "a", Priority: 1,
			Do:    func(context.Context, string) error { closeIt(); return errDown },
			Probe: func(context.Context) error { closeIt(); return nil },
		})
		f.MarkUnhealthy("a")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Error(t, f.Do(t.Context(), "late"))

		f = newFailover(t, pp.Options{Threshold: 1}, pp.Processor[string]{Name: "a", Priority: 1,
			Do: func(context.Context, string) error { return errDown },
		})
		f.Sink().Subscribe("processor.unhealthy:*", func(core.Signal) { closeIt() })
		assert.ErrorIs(t, f.Do(t.Context(), "item"), errDown)

		f = newFailover(t, pp.Options{}, pp.Processor[string]{Name: "a", Priority: 1,
			Do:    func(context.Context, string) error { return errDown },
			Probe: func(context.Context) error { return nil },
		})
		f.Sink().Subscribe("probe.starting:*", func(core.Signal) { closeIt() })
		f.MarkUnhealthy("a")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Error(t, f.Do(t.Context(), "late"))
	})
}

// The end of the item's context is nobody's failure, and the end of it.
func TestCancellationIsNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		f := newFailover(t, pp.Options{Threshold: 1}, pp.Processor[string]{Name: "slow", Priority: 1, Do: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}}, backup.as("backup", 2))
		why := errors.New("the user has left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		assert.Equal(t, why, f.Do(ctx, "item"))
		assert.Equal(t, why, f.Do(ctx, "item"), "and it is not begun")
		assert.Zero(t, backup.items.Load())
		s := settled(t, f)
		assert.EqualValues(t, 2, s.Cancelled)
		assert.EqualValues(t, 1, s.Attempts)
		assert.True(t, f.Processors()[0].Healthy)

		ctx, cancelCause := context.WithCancelCause(t.Context())
		f = newFailover(t, pp.Options{}, pp.Processor[string]{Name: "fails", Priority: 1, Do: func(ctx context.Context, _ string) error {
			return errDown
		}}, pp.Processor[string]{Name: "stops", Priority: 2, Do: func(ctx context.Context, _ string) error {
			cancelCause(why)
			return ctx.Err()
		}}, backup.as("backup", 3))
		err := f.Do(ctx, "item")
		assert.ErrorIs(t, err, why)
		assert.ErrorIs(t, err, errDown)
		assert.EqualError(t, err, "priorityprocessor: fails (priority 1): down; then stopped: the user has left")
		assert.Zero(t, backup.items.Load())
	})
}

// A processor that hangs is blamed when it was given a limit.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backup fake
		f := newFailover(t, pp.Options{Threshold: 1, Timeout: time.Second}, pp.Processor[string]{Name: "hangs", Priority: 1, Do: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}}, backup.as("backup", 2))
		begun := time.Now()
		require.NoError(t, f.Do(t.Context(), "item"))
		assert.Equal(t, time.Second, time.Since(begun))
		state := f.Processors()[0]
		assert.False(t, state.Healthy)
		assert.ErrorIs(t, state.LastErr, context.DeadlineExceeded)
	})
}

func TestFailoverIf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		primary.fail(errDown)
		f := newFailover(t, pp.Options{Verbose: true, FailoverIf: func(err error) bool { return !errors.Is(err, errItem) }}, primary.as("primary", 1), backup.as("backup", 2))
		trip(t, f, 2)
		primary.fail(errItem)
		signals := coretest.Watch(t, f.Sink(), "processing.*, failover.*")
		assert.Equal(t, errItem, f.Do(t.Context(), "item"), "as it is")
		signals.ExpectExactly("processing.started:pri1")
		assert.Zero(t, f.Processors()[0].Failures, "who finds fault with an item works")
		primary.fail(errDown)
		backup.fail(errItem)
		err := f.Do(t.Context(), "item")
		assert.ErrorIs(t, err, errItem)
		assert.ErrorIs(t, err, errDown)
		assert.EqualValues(t, 2, settled(t, f).Failed)
	})
}

// A panic goes to the caller, after all is taken note of.
func TestPanicAndGoexit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errDown) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var backup fake
				f := newFailover(t, pp.Options{Threshold: 2}, pp.Processor[string]{Name: "primary", Priority: 1, Do: func(context.Context, string) error {
					end()
					return nil
				}}, backup.as("backup", 2))
				c := core.Must(core.NewCoordinator(f.Do, core.Options{}))
				for range 2 {
					err := c.Do(t.Context(), "item")
					var p *core.PanicError
					require.ErrorAs(t, err, &p)
				}
				require.NoError(t, c.Do(t.Context(), "item"))
				s := settled(t, f)
				assert.EqualValues(t, 2, s.Failed)
				assert.EqualValues(t, 1, s.Succeeded)
				time.Sleep(5 * time.Second)
				require.Error(t, c.Do(t.Context(), "item"), "the probe")
				require.NoError(t, c.Do(t.Context(), "item"))
				assert.False(t, f.Processors()[0].Probing)
			})
		})
	}
}

// Weak point: the priority is in the key of the signal, where those who need it do
// not look.
func TestPriorityIsInTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b fake
		f := newFailover(t, pp.Options{Verbose: true, Name: "orders"}, a.as("a", 1), b.as("b", 22))
		c := core.Must(core.NewKeyedCoordinator(func(item string) string { return item }, f.Do, core.Options{Sink: f.Sink()}))
		signals := coretest.Watch(t, f.Sink(), "p*,route.*")
		require.NoError(t, c.Do(t.Context(), "order-1"))
		a.fail(errDown)
		require.NoError(t, c.Do(t.Context(), "order-2"))
		f.MarkUnhealthy("a")
		raised := signals.ExpectExactly(
			"processing.started:pri1", "processing.complete:pri1",
			"processing.started:pri1", "processing.failed:pri1", "processing.started:pri22", "processing.complete:pri22",
			"processor.unhealthy:pri1", "route.assigned:pri22",
		)
		for i, key := range []string{"order-1", "order-1", "order-2", "order-2", "order-2", "order-2", "a", "orders"} {
			assert.Equal(t, key, raised[i].Key)
		}
		assert.Equal(t, pp.Report{Processor: "b", Priority: 22}, raised[5].Payload())
		assert.NotZero(t, raised[5].Operation, "the operation of the item raises it")
	})
}

// A stand-in for a router that knows nothing but the sink: while a region is being
// moved, work starts elsewhere; single customers are moved for good.
func TestRouterFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b, c fake
		sink := core.NewSink(core.SinkOptions{Capacity: 10})
		f := newFailover(t, pp.Options{Sink: sink}, a.as("a", 1), b.as("b", 2), c.as("c", 3))
		orders := core.Must(core.NewKeyedCoordinator(func(item string) string { return item }, f.Do, core.Options{}))
		took := func(item string) (by string) {
			before := []int64{a.items.Load(), b.items.Load(), c.items.Load()}
			require.NoError(t, orders.Do(t.Context(), item))
			for i, n := range []int64{a.items.Load(), b.items.Load(), c.items.Load()} {
				if n != before[i] {
					by += string(rune('a' + i))
				}
			}
			return by
		}
		assert.Equal(t, "a", took("order-1"))
		release := sink.Hold(pp.CommandRoute+"2", "", 0)
		assert.Equal(t, "b", took("order-1"))
		for range 20 {
			sink.Raise("chatter")
		}
		assert.Equal(t, "b", took("order-1"), "nobody pushes out what is held")
		b.fail(errDown)
		assert.Equal(t, "bc", took("order-1"), "then lower ones")
		c.fail(errDown)
		assert.Equal(t, "abc", took("order-1"), "then higher ones")
		b.fail(nil)
		c.fail(nil)

		one := sink.Hold(pp.CommandRoute+"3", "order-3", time.Minute)
		assert.Equal(t, "c", took("order-3"), "the newest counts")
		assert.Equal(t, "b", took("order-1"), "for whom it is")
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

		// An operation that routes itself.
		op := core.Must(core.NewCoordinator(func(ctx context.Context, item string) error {
			core.OperationFrom(ctx).SetKey(item)
			core.OperationFrom(ctx).Raise(pp.CommandRoute + "2")
			return f.Do(ctx, item)
		}, core.Options{Sink: sink}))
		before := b.items.Load()
		require.NoError(t, op.Do(t.Context(), "order-7"))
		assert.Equal(t, before+1, b.items.Load())
		assert.Equal(t, "a", took("order-1"))
	})
}

// Routes that were there before are heeded.
func TestRouteBeforeNew(t *testing.T) {
	var a, b fake
	sink := core.NewSink(core.SinkOptions{})
	defer sink.Hold(pp.CommandRoute+"2", "", 0)()
	f := newFailover(t, pp.Options{Sink: sink}, a.as("a", 1), b.as("b", 2))
	trip(t, f, 1)
	assert.EqualValues(t, 1, b.items.Load())
}

// A stand-in for a prober that knows nothing but the sink.
func TestProberFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b, c fake
		sink := core.NewSink(core.SinkOptions{})
		f := newFailover(t, pp.Options{Sink: sink, ProbeAfter: -1}, a.withProbe("a", 1), b.withProbe("b", 2), c.as("c", 2))
		healthy := func() (names string) {
			for _, p := range f.Processors() {
				if p.Healthy {
					names += p.Name
				}
			}
			return names
		}
		// It repairs what it hears of, after a while.
		defer sink.Subscribe("processor.unhealthy:*", func(s core.Signal) {
			priority, ok := core.ParseCommand(s.Name, "processor.unhealthy")
			require.True(t, ok)
			time.AfterFunc(time.Minute, func() { sink.Because(s).RaiseKey("processor.mark.healthy:"+priority, s.Key) })
		})()
		a.fail(errDown)
		trip(t, f, 3)
		assert.Equal(t, "bc", healthy())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "abc", healthy())
		assert.Zero(t, a.probes.Load())

		sink.RaiseKey("processor.mark.unhealthy:pri1", "b")
		sink.RaiseKey("processor.mark.unhealthy", "nobody")
		sink.Raise("processor.mark.unhealthy:pri3")
		sink.Raise("processor.mark.unhealthy:")
		assert.Equal(t, "abc", healthy(), "that is none of these")
		sink.Raise("processor.mark.unhealthy:pri2")
		assert.Equal(t, "a", healthy())
		sink.RaiseKey("processor.mark.healthy", "c")
		assert.Equal(t, "ac", healthy())
		sink.Raise("processor.mark.unhealthy")
		assert.Equal(t, "", healthy())
		assert.Zero(t, f.Processors()[0].NextProbe)
	})
}

// Weak point: the prefix that is listened for also matches longer names, and the atom
// hears itself.
func TestCommandsMatchWholeNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		sink := core.NewSink(core.SinkOptions{})
		f := newFailover(t, pp.Options{Sink: sink}, a.as("a", 1))
		for _, name := range []string{
			pp.CommandUnhealthy + "ish", "x" + pp.CommandUnhealthy, "x." + pp.CommandUnhealthy,
			pp.SignalUnhealthy, pp.SignalUnhealthy + ":pri1", "processor.a.unhealthy",
		} {
			sink.RaiseKey(name, "a")
			assert.True(t, f.Processors()[0].Healthy, name)
		}
		for _, name := range []string{
			pp.SignalStarted, pp.SignalCompleted, pp.SignalFailed, pp.SignalFailover, pp.SignalExhausted, pp.SignalUnhealthy, pp.SignalHealthy,
			pp.SignalRoute, pp.SignalRestored, pp.SignalProbeStarting, pp.SignalProbeSuccess, pp.SignalProbeFailed,
		} {
			assert.False(t, core.Match(pp.CommandHealthy+"*,"+pp.CommandUnhealthy+"*,"+pp.CommandRoute+"*", name+":pri1"), name)
		}
	})
}

func TestMarkAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b fake
		f := newFailover(t, pp.Options{}, a.withProbe("a", 1), b.as("b", 2))
		defer f.Close()
		signals := coretest.Watch(t, f.Sink(), "processor.*")
		assert.False(t, f.MarkUnhealthy("nobody"))
		assert.False(t, f.Reset("nobody"))
		assert.True(t, f.Reset("a"))
		signals.None()
		a.fail(errDown)
		trip(t, f, 2)
		assert.True(t, f.Reset("a"))
		trip(t, f, 2)
		signals.None() // the count began anew
		assert.True(t, f.MarkUnhealthy("a"))
		assert.True(t, f.MarkUnhealthy("a"))
		assert.Equal(t, pp.Report{Processor: "a", Priority: 1}, signals.ExpectExactly("processor.unhealthy:pri1")[0].Payload())
		assert.True(t, f.Reset("a"))
		signals.ExpectExactly("processor.healthy:pri1")
		time.Sleep(time.Hour)
		assert.Zero(t, a.probes.Load(), "the timer is stopped")
	})
}

// Signals about health come in the order in which it changed, also when a handler
// changes it.
func TestSignalsComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		f := newFailover(t, pp.Options{}, a.as("a", 1))
		defer f.Sink().Subscribe("processor.unhealthy:*", func(core.Signal) { f.Reset("a") })()
		signals := coretest.Watch(t, f.Sink(), "processor.*, route.assigned:*")
		f.MarkUnhealthy("a")
		signals.ExpectExactly("processor.unhealthy:pri1", "route.assigned:none", "processor.healthy:pri1", "route.assigned:pri1")
	})
}

// Weak point: counters are not synchronised, and nothing bounds how many run at once.
func TestManyAtOnceThroughACoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 2000
		if testing.Short() {
			n = 500
		}
		var running, most atomic.Int64
		var backup fake
		var calls atomic.Int64
		f := newFailover(t, pp.Options{ProbeAfter: time.Millisecond}, pp.Processor[int]{Name: "primary", Priority: 1, Do: func(ctx context.Context, i int) error {
			m := running.Add(1)
			for have := most.Load(); m > have && !most.CompareAndSwap(have, m); have = most.Load() {
			}
			defer running.Add(-1)
			time.Sleep(time.Duration(i%5) * time.Millisecond)
			if calls.Add(1)%5 != 0 {
				return errDown
			}
			return nil
		}, Probe: backup.ping}, pp.Processor[int]{Name: "backup", Priority: 2, Do: func(ctx context.Context, i int) error {
			return backup.do(ctx, "")
		}}, pp.Processor[int]{Name: "other", Priority: 2, Do: func(ctx context.Context, i int) error {
			if i%7 == 0 {
				return errDown
			}
			return nil
		}})
		c := core.Must(core.NewCoordinator(f.Do, core.Options{MaxConcurrency: 8}))
		for i := range n {
			_, err := c.Enqueue(t.Context(), i)
			require.NoError(t, err)
		}
		require.NoError(t, c.Drain(t.Context()))
		require.NoError(t, f.Close())
		s := settled(t, f)
		assert.EqualValues(t, n, s.Succeeded)
		assert.LessOrEqual(t, most.Load(), int64(8))
		assert.Positive(t, s.Restored)
		require.NoError(t, c.Close())
	})
}

// A handler that blocks holds up who raises, and nobody else; what cannot be told is
// counted.
func TestHandlerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a fake
		f := newFailover(t, pp.Options{}, a.as("a", 1))
		hang := make(chan struct{})
		defer f.Sink().Subscribe("processor.unhealthy:*", func(core.Signal) { <-hang })()
		go f.MarkUnhealthy("a")
		synctest.Wait()
		for range 1000 {
			f.Reset("a")
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
		"New needs at least one processor":                 {nil, pp.Options{}},
		"there are 65 processors, there may be 64":         {many, pp.Options{}},
		`processors[1].Name is " ", it must not be blank`:  {append(ok, a.as(" ", 1)), pp.Options{}},
		`processors[1].Name is "a", as that of another`:    {append(ok, a.as("a", 2)), pp.Options{}},
		`Priority of "b" is 0, it must be at least 1`:      {append(ok, a.as("b", 0)), pp.Options{}},
		`Do of "b" is nil, it must be a function`:          {append(ok, pp.Processor[string]{Name: "b", Priority: 1}), pp.Options{}},
		"MaxProbeAfter is -1ns, it must not be negative":   {ok, pp.Options{MaxProbeAfter: -1}},
		"MaxProbeAfter is 1s, it must be at least ProbeAf": {ok, pp.Options{MaxProbeAfter: time.Second}},
	} {
		_, err := pp.New(try.processors, try.opts)
		assert.ErrorContains(t, err, "priorityprocessor: "+want)
	}
	f := newFailover(t, pp.Options{ProbeAfter: time.Hour}, ok...)
	assert.Equal(t, "priorityprocessor", f.Name())
}

// Nothing on the way to the first processor allocates.
func TestDoAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	var a, b fake
	f := newFailover(t, pp.Options{}, a.as("a", 1), b.as("b", 2))
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { f.Do(ctx, "item") }))
	f.MarkUnhealthy("a")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { f.Do(ctx, "item") }), "by the backup")
}

func TestProcessorStatusInJSONSaysWhatWentWrong(t *testing.T) {
	text, err := json.Marshal([]pp.ProcessorStatus{
		{Name: "primary", Priority: 1, Failures: 3, LastErr: errDown},
		{Name: "backup", Priority: 2, Healthy: true},
	})
	require.NoError(t, err)
	assert.JSONEq(t, fmt.Sprintf(`[
		{"name": "primary", "priority": 1, "healthy": false, "since": "0001-01-01T00:00:00Z", "failures": 3, "probing": false,
			"running": 0, "succeeded": 0, "failed": 0, "cancelled": 0, "error": %q},
		{"name": "backup", "priority": 2, "healthy": true, "since": "0001-01-01T00:00:00Z", "failures": 0, "probing": false,
			"running": 0, "succeeded": 0, "failed": 0, "cancelled": 0}
	]`, errDown.Error()), string(text))
}
