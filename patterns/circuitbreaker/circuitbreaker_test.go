package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

var errDown = errors.New("down")

// bubble runs a test with a breaker over a sink of capacity 2, on which nothing is left, and
// a wrapped function that returns its item.
func bubble(t *testing.T, opts circuitbreaker.Options, test func(*testing.T, *signals.Sink, *circuitbreaker.Breaker, core.Work[error])) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 2})
		coretest.NothingLeft(t, sink, func() {
			b, err := circuitbreaker.New(sink, opts)
			require.NoError(t, err)
			defer synctest.Wait() // another goroutine may tell the last change
			defer b.Close()
			test(t, sink, b, circuitbreaker.Wrap(b, func(_ context.Context, err error) error { return err }))
		})
	})
}

// Failures are counted by the time of their signals, wherever these are raised, and
// whatever else is raised. The breaker closes at the time that ClosesIn has said.
func TestClosesAsFailuresAge(t *testing.T) {
	for _, name := range []string{"api.failure", "api.*"} {
		opts := circuitbreaker.Options{Name: "api", Failure: name, Threshold: 3, Window: 10 * time.Second}
		bubble(t, opts, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
			c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
				time.Sleep(40 * time.Second)
				core.OperationFrom(ctx).Raise("api.failure")
				return nil
			}, core.Options{Sink: sink, MaxTracked: -1}))
			defer c.Close()
			of := core.Must(circuitbreaker.New(c, opts))
			defer of.Close()
			core.Must(c.Enqueue(t.Context(), 1))
			time.Sleep(41 * time.Second)
			require.ErrorIs(t, work(t.Context(), errDown), errDown)
			for i := range 1000 {
				sink.Raise(fmt.Sprint("noise", i))
			}
			assert.NoError(t, b.Check())
			sink.Raise("api.failure")
			assert.Equal(t, 1, of.Failures(), "of the coordinator")
			for range 2 { // reading changes nothing
				var open *circuitbreaker.OpenError
				require.ErrorAs(t, b.Check(), &open)
				assert.ErrorIs(t, open, circuitbreaker.ErrOpen)
				assert.Equal(t, circuitbreaker.OpenError{Name: "api", Failures: 3, Wait: 9*time.Second + 1}, *open)
				require.ErrorAs(t, work(t.Context(), nil), &open)
			}
			time.Sleep(b.ClosesIn() - 1)
			assert.True(t, sink.Has("circuit.open.api"))
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			assert.False(t, b.Open())
			assert.False(t, sink.Has("circuit.open.api"))
			assert.Zero(t, b.ClosesIn())
			assert.Equal(t, 2, b.Failures())
		})
	}
}

// Work in Wrap raises its failure through its operation if this is on the sink, otherwise on
// the sink. CountIf decides what counts as a failure. A panic always counts.
func TestWrapRaisesFailures(t *testing.T) {
	countIf := func(err error) bool { return errors.Is(err, errDown) }
	for failure, raised := range map[string]string{"": "circuit.failure.x", "down.*": "circuit.failure.x"} {
		bubble(t, circuitbreaker.Options{Name: "x", Failure: failure, CountIf: countIf}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
			var keys []string
			defer sink.Subscribe(raised, func(s signals.Signal) { keys = append(keys, s.Key) })()
			for _, on := range []*signals.Sink{sink, nil} {
				c := core.Must(core.NewKeyedCoordinator(func(error) string { return "key" }, work, core.Options{Sink: on}))
				require.ErrorIs(t, c.Do(t.Context(), errDown), errDown)
				require.NoError(t, c.Close())
			}
			assert.ErrorIs(t, work(t.Context(), errDown), errDown)
			assert.NoError(t, work(t.Context(), nil))
			assert.Error(t, work(t.Context(), errors.New("of the caller")))
			panics := circuitbreaker.WrapResult(b, func(context.Context, int) (int, error) { panic("on purpose") })
			assert.Panics(t, func() { _, _ = panics(t.Context(), 1) })
			done, err := b.Allow()
			require.NoError(t, err)
			done(errors.New("of the caller"))
			assert.Equal(t, []string{"key", "x", "x", "x"}, keys)
			assert.Equal(t, 4, b.Failures())
		})
	}
}

// With trials, only failures of the closed and the half-open state count. Core/breaker
// tests the decisions of trials.
func TestHalfOpen(t *testing.T) {
	opts := circuitbreaker.Options{Threshold: 2, Window: 90 * time.Second, HalfOpen: 2, OpenFor: time.Minute}
	bubble(t, opts, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
		state := func(want breaker.State) {
			t.Helper()
			assert.Equal(t, want, b.State())
			assert.Equal(t, want == breaker.Open, sink.Has("circuit.open.breaker"))
			assert.Equal(t, want != breaker.Open, b.Check() == nil)
		}
		old, err := b.Allow()
		require.NoError(t, err)
		sink.Raise("circuit.failure.breaker")
		assert.ErrorIs(t, work(t.Context(), errDown), errDown)
		state(breaker.Open)
		time.Sleep(time.Minute)
		synctest.Wait() // a timer tells the change
		state(breaker.HalfOpen)
		old(errDown) // began before
		assert.Equal(t, 2, b.Failures())
		first, _ := b.Allow()
		second, _ := b.Allow()
		var open *circuitbreaker.OpenError
		require.ErrorAs(t, work(t.Context(), nil), &open, "two at once")
		assert.Zero(t, open.Wait)
		_, err = b.Allow()
		require.ErrorIs(t, err, circuitbreaker.ErrOpen)
		first(nil)
		second(nil)
		state(breaker.Closed)
		assert.Zero(t, b.Failures(), "forgotten")
		sink.Raise("circuit.failure.breaker")
		state(breaker.Closed)
		sink.Raise("circuit.failure.breaker")
		state(breaker.Open)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		state(breaker.HalfOpen)
		sink.Raise("circuit.failure.breaker")
		sink.Raise("circuit.failure.breaker")
		state(breaker.Open)
	})
}

// However many goroutines call, there are never more trials than may be. Only the first end
// of a call counts.
func TestTrialsOfManyGoroutines(t *testing.T) {
	bubble(t, circuitbreaker.Options{HalfOpen: 3}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, _ core.Work[error]) {
		b.Trip()
		time.Sleep(30 * time.Second)
		var all sync.WaitGroup
		begun := make(chan func(error), 50)
		for range cap(begun) {
			all.Go(func() {
				if done, err := b.Allow(); err == nil {
					begun <- done
				}
			})
		}
		all.Wait()
		assert.Len(t, begun, 3)
		first := <-begun
		first(nil)
		first(errDown)
		for range 2 {
			all.Go(func() { (<-begun)(nil) })
		}
		all.Wait()
		assert.Equal(t, breaker.Closed, b.State())
		assert.Zero(t, b.Failures())
	})
}

// Breakers with different names count separately, even on one sink. With the same Failure they
// open together.
func TestTwoBreakersOnOneSink(t *testing.T) {
	for _, failure := range []string{"", "failure"} {
		bubble(t, circuitbreaker.Options{Name: "a", Failure: failure}, func(t *testing.T, sink *signals.Sink, a *circuitbreaker.Breaker, work core.Work[error]) {
			b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "b", Failure: failure}))
			defer b.Close()
			for range 5 {
				assert.Equal(t, errDown, work(t.Context(), errDown))
			}
			assert.True(t, a.Open())
			assert.Equal(t, failure != "", b.Open())
		})
	}
}

func TestDefaults(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: time.Second} {
		bubble(t, circuitbreaker.Options{Window: window}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, _ core.Work[error]) {
			for i := range 5 {
				assert.False(t, b.Open(), i)
				sink.Raise("circuit.failure.breaker")
			}
			assert.Equal(t, want+1, b.ClosesIn())
			b.Reset()
			b.Trip()
			assert.Equal(t, want, b.ClosesIn())
		})
	}
}

// The held signal defers items of coordinators that name it, and of no others.
func TestGates(t *testing.T) {
	bubble(t, circuitbreaker.Options{Name: "a", Threshold: 1, Window: time.Hour, OpenFor: time.Minute, HalfOpen: 1}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
		defers := core.Must(core.NewCoordinator(work, core.Options{Sink: sink, DeferOn: "circuit.open.a"}))
		other := core.Must(core.NewCoordinator(work, core.Options{Sink: sink, DeferOn: "circuit.open.b"}))
		defer core.InOrder(defers, other).Close()
		sink.Raise("circuit.failure.a")
		assert.Equal(t, time.Minute, b.ClosesIn())
		assert.ErrorIs(t, other.Do(t.Context(), nil), circuitbreaker.ErrOpen)
		start := time.Now()
		require.NoError(t, defers.Do(t.Context(), nil), "the trial")
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

// A handler of the held signal may use the breaker and close it. Then it is closed for ever.
func TestResetAndCloseFromAHandler(t *testing.T) {
	bubble(t, circuitbreaker.Options{Threshold: 1}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
		end := func() { b.Reset() }
		defer sink.Subscribe(circuitbreaker.SignalOpen+".*", func(signals.Signal) {
			assert.True(t, b.Open())
			assert.ErrorIs(t, work(t.Context(), nil), circuitbreaker.ErrOpen, "the signal is held, and its handlers are still called")
			end()
			assert.False(t, b.Open())
		})()
		sink.Raise("circuit.failure.breaker")
		assert.Zero(t, b.Failures())
		assert.False(t, sink.Has("circuit.open.*"))
		end = func() { assert.NoError(t, b.Close()) }
		for range 2 {
			assert.Equal(t, errDown, work(t.Context(), errDown))
		}
		b.Trip()
		assert.NoError(t, b.Check())
		assert.NoError(t, b.Close())
	})
}

func TestAllocations(t *testing.T) {
	for _, opts := range []circuitbreaker.Options{{}, {Rate: 0.5}} {
		bubble(t, opts, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
			assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = b.Check(), work(t.Context(), nil) }))
		})
	}
}

func TestMistakes(t *testing.T) {
	for name, opts := range map[string]circuitbreaker.Options{
		"Name":         {Name: "a*"},
		"Name is":      {Name: "api "},
		"Failure":      {Failure: "*"},
		`"a.b "`:       {Failure: "a.b "},
		`"*.closed.*"`: {Failure: "*.closed.*"},
		"Window":       {Window: -1},
		"OpenFor":      {OpenFor: -1},
		"Threshold":    {Threshold: -1},
		"is 16385":     {Threshold: signals.MonitorCap + 1},
		"Rate":         {Rate: 1.1},
	} {
		_, err := circuitbreaker.New(signals.NewSink(signals.SinkOptions{}), opts)
		assert.ErrorContains(t, err, "circuitbreaker: ")
		assert.ErrorContains(t, err, name)
	}
	_, err := circuitbreaker.New(nil, circuitbreaker.Options{})
	assert.ErrorContains(t, err, "not nil")
	assert.Panics(t, func() { circuitbreaker.Wrap[int](nil, nil) })
}

// Each change is signalled once, when it happens: signals are held, released, and raised with a payload.
func TestChangesAreFacts(t *testing.T) {
	failing := func(t *testing.T, b *circuitbreaker.Breaker, work core.Work[error]) {
		for range 2 {
			assert.Equal(t, errDown, work(t.Context(), errDown))
		}
	}
	for _, c := range []struct {
		opts  circuitbreaker.Options
		steps func(*testing.T, *circuitbreaker.Breaker, core.Work[error])
		want  []string
	}{
		{circuitbreaker.Options{Threshold: 2, Window: time.Minute}, failing, []string{
			"0s open", "0s opened {too many failures in the window 0s}", "1m0.000000001s open ends",
			"1m0.000000001s closed {fewer failures in the window 1m0.000000001s}"}},
		{circuitbreaker.Options{Rate: 0.5, MinCalls: 2, OpenFor: time.Minute, HalfOpen: 1}, func(t *testing.T, b *circuitbreaker.Breaker, work core.Work[error]) {
			failing(t, b, work)
			time.Sleep(90 * time.Second)
			assert.Equal(t, errDown, work(t.Context(), errDown))
			time.Sleep(time.Minute)
			assert.NoError(t, work(t.Context(), nil))
		}, []string{
			"0s open", "0s opened {too many calls have failed 0s}",
			"1m0s half_open", "1m0s open ends",
			"1m30s open", "1m30s half_open ends", "1m30s opened {a trial has failed 0s}",
			"2m30s half_open", "2m30s open ends",
			"2m30s half_open ends", "2m30s closed {enough trials have succeeded 2m30s}"}},
		{circuitbreaker.Options{OpenFor: time.Minute}, func(t *testing.T, b *circuitbreaker.Breaker, work core.Work[error]) {
			b.Trip()
			time.Sleep(time.Second)
			b.Trip()
			b.Reset()
			b.Trip()
			time.Sleep(time.Hour)
			b.Trip()
			b.Close()
		}, []string{
			"0s open", "0s opened {it was opened by a call of Trip 0s}",
			"1s open", "1s open ends", "1s open ends", "1s closed {it was closed by a call of Reset 1s}",
			"1s open", "1s opened {it was opened by a call of Trip 0s}",
			"1m1s closed {it has been open for long enough 1m0s}",
			"1h0m1s open", "1h0m1s opened {it was opened by a call of Trip 0s}",
			"1h0m1s open ends", "1h0m1s closed {it has ended 0s}"}},
	} {
		c.opts.Name = "api"
		bubble(t, c.opts, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
			begin, got := time.Now(), []string(nil)
			note := func(s signals.Signal, text string) {
				name, ok := strings.CutSuffix(s.Name[strings.Index(s.Name, ".")+1:], ".api")
				assert.True(t, ok)
				got = append(got, strings.TrimSpace(fmt.Sprint(time.Since(begin), " ", name, " ", text)))
			}
			defer sink.Subscribe("circuit.open.*, circuit.half_open.*", func(s signals.Signal) { note(s, "") })()
			defer sink.SubscribeRetracted("circuit.*", func(r signals.Retraction) { note(r.Signal, "ends") })()
			defer circuitbreaker.Changes.Subscribe(sink, func(s signals.Signal, change circuitbreaker.Change) {
				assert.Equal(t, "api", s.Key)
				note(s, fmt.Sprint(change))
			})()
			c.steps(t, b, work)
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.Equal(t, c.want, got)
		})
	}
}

// A class that follows both held signals starts only as many items as there are trials, even when a trial fails, and when the
// others go on after a success. The breaker refuses at most the items that were chosen before it opened.
func TestDeferredItemsDoNotRushIn(t *testing.T) {
	bubble(t, circuitbreaker.Options{Name: "gpt", OpenFor: time.Minute, HalfOpen: 3}, func(t *testing.T, sink *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
		var mu sync.Mutex
		calls, running, most := 0, map[bool]int{}, map[bool]int{} // by: the breaker is closed
		c := core.Must(core.NewCoordinator(circuitbreaker.Wrap(b, func(context.Context, int) error {
			mu.Lock()
			calls++
			n, closed := calls, b.State() == breaker.Closed
			running[closed]++
			most[closed] = max(most[closed], running[closed])
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running[closed]--
			}()
			time.Sleep(time.Duration(1+n%4) * time.Second) // so that the items do not end together
			if n == 2 {
				return errDown
			}
			return nil
		}), core.Options{Sink: sink, MaxConcurrency: 16, Classes: []core.Class{{
			Name: "gpt", DeferOn: "circuit.open.gpt", TrialOn: "circuit.half_open.gpt", Trials: 3,
		}}}))
		defer c.Close()
		b.Trip()
		for item := range 100 {
			core.Must(c.Class("gpt").Enqueue(t.Context(), item))
		}
		time.Sleep(time.Minute - 1)
		assert.Zero(t, calls)
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, map[bool]int{false: 3, true: 16}, most)
		assert.LessOrEqual(t, c.Stats().Failed, uint64(1+2), "the trial that the service failed, and those that were chosen before")
	})
}

// later is no failure, like durable.Snooze.
type later struct{}

func (later) Error() string { return "later" }
func (later) Failed() bool  { return false }

func TestAnOutcomeThatIsNoFailure(t *testing.T) {
	bubble(t, circuitbreaker.Options{Name: "x", Threshold: 1}, func(t *testing.T, _ *signals.Sink, b *circuitbreaker.Breaker, work core.Work[error]) {
		assert.Equal(t, later{}, work(t.Context(), later{}))
		assert.Zero(t, b.Failures())
		assert.False(t, b.Open())
	})
}

// A breaker that is a shadow is open, half-open and closed at the same times as one in force. It allows every call, and
// holds one signal.
func TestShadow(t *testing.T) {
	for _, opts := range []circuitbreaker.Options{
		{Threshold: 2, Window: 10 * time.Second}, {Threshold: 2, Window: 10 * time.Second, HalfOpen: 2}, {Rate: 0.5, MinCalls: 4, Window: 10 * time.Second, HalfOpen: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			sink, states := signals.NewSink(signals.SinkOptions{}), map[breaker.State]int{}
			opts.Name = "real"
			inForce := core.Must(circuitbreaker.New(sink, opts))
			defer inForce.Close()
			opts.Name, opts.Shadow = "shadow", true
			shadow := core.Must(circuitbreaker.New(sink, opts))
			defer shadow.Close()
			work := func(_ context.Context, err error) error { return err }
			calls := 0
			real, tried := circuitbreaker.Wrap(inForce, work), circuitbreaker.Wrap(shadow, func(ctx context.Context, err error) error { calls++; return err })
			for i := range 400 {
				time.Sleep(time.Second)
				synctest.Wait()
				state := inForce.State()
				states[state]++
				assert.Equal(t, state, shadow.State())
				assert.Equal(t, inForce.Failures(), shadow.Failures())
				assert.Equal(t, state != breaker.Closed, sink.Has("circuit.would_open.shadow"))
				assert.NoError(t, shadow.Check())
				var err error
				if i/20%2 == 0 && i%3 > 0 {
					err = errDown
				}
				real(t.Context(), err)
				assert.Equal(t, err, tried(t.Context(), err))
				done, err := shadow.Allow()
				require.NoError(t, err)
				done(context.Canceled) // says nothing, as for a trial that was cancelled
				if done, err := inForce.Allow(); err == nil {
					done(context.Canceled)
				}
			}
			assert.Equal(t, 400, calls)
			assert.Equal(t, 2+min(1, opts.HalfOpen), len(states), "states: %v", states)
			assert.False(t, sink.Has("circuit.open.shadow, circuit.half_open.shadow, breaker.opened.shadow, breaker.closed.shadow"))
		})
	}
}
