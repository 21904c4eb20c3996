package priorityprocessor_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	pp "github.com/ephemeralgo/ephemeral/atoms/priorityprocessor"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A probe that is put off for as long as can be is not made at once.
func TestHugeProbeAfterDoesNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var primary, backup fake
		f := newFailover(t, pp.Options{ProbeAfter: math.MaxInt64}, primary.as("primary", 1), backup.as("backup", 2))
		time.Sleep(time.Nanosecond)
		f.MarkUnhealthy("primary")
		require.NoError(t, f.Do(t.Context(), "item"))
		assert.Zero(t, primary.items.Load())
		assert.False(t, f.Processors()[0].Healthy)
		assert.True(t, f.Processors()[0].NextProbe.After(time.Now()))
	})
}

// When the item's own time is over nobody is to blame, also when that of the attempt
// is over at the same instant, and when a processor that has passed the deadline on
// hears of it first.
func TestNobodyIsBlamedForTheDeadlineOfTheItem(t *testing.T) {
	for _, timeout := range []time.Duration{-1, 0, time.Second} {
		for range 100 {
			synctest.Test(t, func(t *testing.T) {
				var backup fake
				f := newFailover(t, pp.Options{Threshold: 1, Timeout: timeout}, pp.Processor[string]{Name: "remote", Priority: 1, Do: func(ctx context.Context, _ string) error {
					if timeout <= 0 {
						time.Sleep(time.Second) // it has told the remote side the deadline
					} else {
						<-ctx.Done()
					}
					return context.DeadlineExceeded
				}}, backup.as("backup", 2))
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

// What is known of a panic is told.
func TestPanicIsAnError(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errDown) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFailover(t, pp.Options{Threshold: 1}, pp.Processor[string]{Name: "p", Priority: 1, Do: func(context.Context, string) error { end(); return nil }})
				signals := coretest.Watch(t, f.Sink(), "processing.failed:*,processor.unhealthy:*")
				c := core.Must(core.NewCoordinator(f.Do, core.Options{Sink: f.Sink()}))
				require.Error(t, c.Do(t.Context(), "item"))
				for _, s := range signals.ExpectExactly("processing.failed:pri1", "processor.unhealthy:pri1") {
					assert.ErrorContains(t, s.Payload().(pp.Report).Err, "priorityprocessor: the processor panicked")
				}
				assert.Error(t, f.Processors()[0].LastErr)
			})
		})
	}
}

// A panic of FailoverIf passes through; what the processor said counts as its failure.
func TestFailoverIfPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p fake
		p.fail(errDown)
		f := newFailover(t, pp.Options{FailoverIf: func(error) bool { panic("oops") }}, p.as("p", 1))
		assert.PanicsWithValue(t, "oops", func() { _ = f.Do(t.Context(), "item") })
		assert.EqualValues(t, 1, settled(t, f).Failed)
		assert.Equal(t, errDown, f.Processors()[0].LastErr)
	})
}

// Handlers that end the goroutine, as t.FailNow does, lose nothing: no item, no probe
// and no news.
func TestHandlersThatEndTheGoroutine(t *testing.T) {
	for _, pattern := range []string{
		"processing.started:*", "processing.complete:*", "processing.failed:*", "failover.*", "processor.*", "route.*", "restore.*", "probe.*", "p*,f*,r*",
	} {
		t.Run(pattern, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var primary, backup fake
				primary.fail(errDown)
				f := newFailover(t, pp.Options{Threshold: 1, Verbose: true}, primary.withProbe("primary", 1), backup.as("backup", 2))
				signals := coretest.Watch(t, f.Sink(), "processor.*,route.*,restore.*,probe.*")
				f.Sink().Subscribe(pattern, func(core.Signal) { runtime.Goexit() })
				c := core.Must(core.NewCoordinator(f.Do, core.Options{Sink: f.Sink()}))
				if pattern == "processing.started:*" || pattern == "p*,f*,r*" {
					assert.Error(t, c.Do(t.Context(), "item"))
					assert.EqualValues(t, 1, settled(t, f).Cancelled, "before it was given to anybody")
					go f.MarkUnhealthy("primary")
				} else {
					_ = c.Do(t.Context(), "item")
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				settled(t, f)
				if pattern == "probe.*" || pattern == "p*,f*,r*" {
					signals.ExpectExactly("processor.unhealthy:pri1", "route.assigned:pri2", "probe.starting:pri1", "probe.failed:pri1")
					assert.Equal(t, 10*time.Second, time.Until(f.Processors()[0].NextProbe), "it is tried again")
					require.NoError(t, f.Close())
					return
				}
				assert.True(t, f.Processors()[0].Healthy, "a probe has restored it")
				signals.ExpectExactly("processor.unhealthy:pri1", "route.assigned:pri2",
					"probe.starting:pri1", "probe.success:pri1", "processor.healthy:pri1", "route.assigned:pri1", "restore.primary")
			})
		})
	}
}
