package core_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// The calls of OnCount are those of a model that looks at the count at every instant.
func TestOnCount(t *testing.T) {
	for seed := range core.Often(500, 50) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			s := core.NewSink(core.SinkOptions{Capacity: 2}) // a monitor does not look at the window
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

// The function is called under no lock, never twice at once, and last with what is so.
func TestOnCountCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
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
