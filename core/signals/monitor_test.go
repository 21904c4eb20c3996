package signals_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestMonitorOfOperationSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, retract bool) error {
			o := core.OperationFrom(ctx)
			o.Raise("a")
			o.Raise("a")
			o.Hold("a", 0) // released when the operation finishes
			if retract {
				o.Retract("a")
			}
			return nil
		}, core.Options{Sink: s, MaxTracked: 1}))
		defer c.Close()
		c.Do(t.Context(), false)
		own, own0, shared, shared0 := c.Monitor("a", time.Minute), c.Monitor("a", 0), s.Monitor("a", time.Minute), s.Monitor("a", 0)
		s.Raise("a") // for the sink only
		check := func(what string, o, sh int) {
			t.Helper()
			if own.Count() != o || own0.Count() != o || shared.Count() != sh || shared0.Count() != sh {
				t.Errorf("%s: got %d, %d of the coordinator, %d, %d of the sink, want %d and %d", what,
					own.Count(), own0.Count(), shared.Count(), shared0.Count(), o, sh)
			}
		}
		check("at first", 2, 3)
		c.Do(t.Context(), true) // evicts the first operation, which changes nothing
		check("after one more", 3, 4)
		coretest.Check(t, c.Count("a") == 1 && s.Count("a") == 2, "the windows show %d and %d, want 1 and 2", c.Count("a"), s.Count("a"))
		time.Sleep(time.Minute + 1)
		checkEqual(t, "own.Count(), shared.Count(), own0.Count(), shared0.Count()", words(own.Count(), shared.Count(), own0.Count(), shared0.Count()), "0 0 3 4")
	})
}

func TestMonitorBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const never = time.Duration(math.MaxInt64)
		s := signals.NewSink(signals.SinkOptions{})
		m := s.Monitor("a", 10*time.Second)
		check := func(n int, want time.Duration) {
			t.Helper()
			if got := m.Below(n); got != want {
				t.Errorf("Below(%d) with %d: got %v, want %v", n, m.Count(), got, want)
			}
		}
		check(1, 0)
		check(0, never)
		check(-1, never)
		for range 3 {
			s.Raise("a")
			time.Sleep(time.Second)
		}
		check(4, 0)
		check(3, 7*time.Second+1) // one exactly as old as the span counts

		m = s.Monitor("a", 0)
		check(4, 0)
		check(3, never)
		m = s.Monitor("a", math.MaxInt64)
		if got := m.Below(2); got < never-time.Hour {
			t.Errorf("Below with the longest span: got %v", got)
		}
	})
}

func TestMonitorCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{Capacity: 10})
		m := s.Monitor("a", time.Minute)
		for range signals.MonitorCap {
			s.Raise("a")
		}
		time.Sleep(time.Second)
		checkEqual(t, "Count", m.Count(), signals.MonitorCap)
		for range 100 {
			s.Raise("a")
		}
		checkEqual(t, "Count", m.Count(), signals.MonitorCap)
		time.Sleep(time.Minute - time.Second + 1)
		if got := m.Count(); got != 100 { // the newest signals count
			t.Errorf("got %d, want 100", got)
		}
	})
}

// OnCount is called as in a model that reads the count at every instant.
func TestOnCount(t *testing.T) {
	for seed := range long.Often(300, 15) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			s := signals.NewSink(signals.SinkOptions{Capacity: 2}) // a monitor does not look at the window
			high, low := 3+rnd.IntN(3), rnd.IntN(3)
			span := []time.Duration{0, time.Second}[rnd.IntN(2)]
			m := s.Monitor("x", span)
			var got, want []bool
			cancel := m.OnCount(high, low, func(over bool) { got = append(got, over) })
			look := func() {
				synctest.Wait()
				n, over := m.Count(), len(want)%2 == 1
				if !over && n >= high || over && n <= low {
					want = append(want, !over)
				}
			}
			for range 200 {
				switch rnd.IntN(8) {
				case 0:
					s.Retract("x")
				case 1:
					m.Reset()
				case 2, 3:
					for range rnd.IntN(150) {
						time.Sleep(10 * time.Millisecond)
						look()
					}
				default:
					s.Raise("x")
				}
				look()
			}
			coretest.Check(t, slices.Equal(got, want), "seed %d, span %v, high %d, low %d: got calls %v, want %v", seed, span, high, low, got, want)
			cancel()
			n := len(got)
			for range high {
				s.Raise("x")
			}
			m.Stop()
			time.Sleep(time.Minute)
			checkEqual(t, "calls after cancel", len(got), n)
		})
	}
}

// The function is called without a lock, never twice at once, and last with the current
// value.
func TestOnCountCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		m := s.Monitor("x", time.Minute)
		for range 2 {
			s.Raise("x")
		}
		var calls []bool
		inside := 0
		cancel := m.OnCount(2, 1, func(over bool) {
			if inside++; inside > 1 {
				t.Error("two calls at once")
			}
			calls = append(calls, over)
			s.Retract("x") // and so another call
			time.Sleep(time.Second)
			inside--
			if len(calls) == 3 {
				panic("on purpose")
			}
		})
		checkEqual(t, "calls while it was made", slices.Equal(calls, []bool{true, false}), true)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { s.Raise("x") })
		}
		wg.Wait()
		checkEqual(t, "calls", slices.Equal(calls, []bool{true, false, true, false}), true)
		checkEqual(t, "panics", s.Stats().Panics, 1)
		cancel()
		checkEqual(t, "monitors", s.Stats().Monitors, 1)
		m.Stop()
		checkEqual(t, "monitors after Stop", s.Stats().Monitors, 0)
		for _, wrong := range [][2]int{{1, 1}, {1, -1}} {
			checkPanics(t, func() { m.OnCount(wrong[0], wrong[1], func(bool) {}) })
		}
		checkPanics(t, func() { m.OnCount(1, 0, nil) })
	})
}
